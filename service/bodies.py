"""Request bodies: JSON checked against a model, with every problem listed."""

from typing import TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from policy.documents.model_errors import to_problems
from policy.errors import RequestError


class Body(BaseModel):
    """A body, or part of one, that another program wrote.

    Fields that a newer Kubernetes adds are ignored.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)


BodyT = TypeVar("BodyT", bound=Body)


def parse_body(model: type[BodyT], body: bytes) -> BodyT:
    """Parse JSON. Raises RequestError with all problems."""
    try:
        return model.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as exc:
        raise RequestError.at("", f"the body is not JSON: {exc}") from exc
    except ValidationError as exc:
        raise RequestError(to_problems(exc, model)) from exc
