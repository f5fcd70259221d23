"""Errors of the models (pydantic), in our own words.

The messages of the library change between versions and name Python types; ours say what to write.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from policy.errors import Problem
from policy.wording import describe, join_path, listing

_TYPES: Final = {
    "int_type": "a whole number",
    "bool_type": "true or false",
    "string_type": "a string",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_BAD_KEY: Final = "[key]"
"""The end of pydantic's path to a key of a mapping."""
_LIMITS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "greater_than_equal": lambda ctx: f"must be at least {ctx['ge']}",
    "less_than_equal": lambda ctx: f"must be at most {ctx['le']}",
    "too_short": lambda ctx: "must not be empty",
    "string_too_short": lambda ctx: "must not be empty",
    "too_long": lambda ctx: f"must have at most {ctx['max_length']} entries",
}


def to_problems(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Translate all errors, in the order of the document's model."""
    return [_problem(details, model) for details in error.errors(include_url=False)]


def _problem(details: ErrorDetails, model: type[BaseModel]) -> Problem:
    location = details["loc"]
    if location[-1:] == (_BAD_KEY,):
        location = location[:-1]
    return Problem(join_path(location), _message(details, model))


def _message(details: ErrorDetails, model: type[BaseModel]) -> str:
    kind, context, value = details["type"], details.get("ctx", {}), details["input"]
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return f"unknown key; known keys are {listing(_known_keys(model, details['loc'][:-1]))}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"must be {context['expected'].replace(chr(39), '')}, not {describe(value)}"
    if kind in _TYPES:
        return f"must be {_TYPES[kind]}, not {describe(value)}"
    if kind in _LIMITS:
        shown = f", not {value}" if isinstance(value, int) else ""
        return _LIMITS[kind](context) + shown
    return f"is not valid: {details['msg']}"


def _known_keys(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """List the keys of the mapping at a location, as a document writes them."""
    parts = iter(location)
    for part in parts:
        if isinstance(part, str):
            annotation = _field_types(model)[part]
            model = next(models_in(annotation))
            if get_origin(annotation) is dict:
                next(parts, None)  # the name of an entry, which its author chose
    return list(_field_types(model))


def _field_types(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation such as `list[Entry] | None` mentions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)
