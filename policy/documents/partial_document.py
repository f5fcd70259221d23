"""The readable part of a document that has problems, so that all problems are found at once.

An admin should not correct one mistake only to learn of the next. What cannot be read is removed;
the rest is compared with other documents, and never comes into force.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from policy.documents.models import CompileBudget, Document, Location
from policy.documents.yaml_tree import Plain

_ROUNDS: Final = 4
"""Removing a value may make the one around it invalid, and so on outwards."""


def read_partially(
    data: Mapping[str, Plain],
    error: ValidationError,
    model: type[Document],
    *,
    budget: CompileBudget,
) -> Document | None:
    """Return the document without its unreadable parts; None if too little is left."""
    left: dict[str, Any] = {key: _copy(value) for key, value in data.items()}
    for _ in range(_ROUNDS):
        # Backwards: cutting a list does not move the entries before.
        for location in sorted(_unreadable(error), key=_order, reverse=True):
            model.take_away(left, location)
        try:
            return model.model_validate(left, context=budget)
        except ValidationError as exc:
            error = exc
    return None


def _unreadable(error: ValidationError) -> Iterator[Location]:
    """Yield what to remove: for a missing field, the mapping around it."""
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
