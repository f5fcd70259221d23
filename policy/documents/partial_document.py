"""What can be read of a document that has problems, so that all others are told with them.

An admin who mends one mistake should not then hear of the next. What cannot be read is taken away;
what is left is compared with other documents, and is never put in force.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from policy.documents.models import CompileBudget, Document, Location
from policy.documents.yaml_tree import Plain

_ROUNDS: Final = 4
"""What is taken away may be missed by what it stood in, and so on outwards."""


def read_partially(
    data: Mapping[str, Plain],
    error: ValidationError,
    model: type[Document],
    *,
    budget: CompileBudget,
) -> Document | None:
    """Return the document without what cannot be read; None if too little is left of it."""
    left: dict[str, Any] = {key: _copy(value) for key, value in data.items()}
    for _ in range(_ROUNDS):
        # Backwards: what is cut off a list does not move what stands before.
        for location in sorted(_unreadable(error), key=_order, reverse=True):
            model.take_away(left, location)
        try:
            return model.model_validate(left, context=budget)
        except ValidationError as exc:
            error = exc
    return None


def _unreadable(error: ValidationError) -> Iterator[Location]:
    """Yield where to take something away: of what lacks something, the whole."""
    for details in error.errors(include_url=False, include_context=False):
        yield details["loc"][:-1] if _is_around(details) else details["loc"]


def _is_around(details: ErrorDetails) -> bool:
    is_key = details["loc"][-1:] == ("[key]",)
    return is_key or (details["type"] == "missing" and len(details["loc"]) > 1)


def _copy(value: Plain) -> Plain:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value


def _order(location: Location) -> list[tuple[bool, int, str]]:
    return [(True, part, "") if isinstance(part, int) else (False, 0, part) for part in location]
