"""Request bodies: JSON from a caller into a model, or every problem with it."""

from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from policy.documents.model_errors import to_problems
from policy.errors import RequestError


class Body(BaseModel):
    """A body, or part of one, that another program wrote.

    Kubernetes' own words grow with its versions: what we do not know is not ours to refuse.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)


BodyT = TypeVar("BodyT", bound=Body)


def parse_body(model: type[BodyT], body: bytes) -> BodyT:
    """Parse JSON; RequestError lists everything that is wrong with it."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as exc:
        raise RequestError.at("", f"the body is not JSON: {exc}") from exc
    return read_body(model, content)


def read_body(model: type[BodyT], content: Any) -> BodyT:  # noqa: ANN401 - whatever JSON holds
    """Read JSON that was parsed already."""
    try:
        return model.model_validate(content)
    except ValidationError as exc:
        raise RequestError(to_problems(exc, model)) from exc
