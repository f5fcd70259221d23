"""Writes the policy reference from the models, as Markdown (`make reference`)."""

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from policy.cluster.hived import HivedClusterDocument
from policy.documents.model_errors import models_in
from policy.documents.queues_document import LevelsField
from policy.parser import MODELS, DocumentKind
from policy.queues.factors import FACTORS
from policy.queues.formula import Formula
from policy.rules.comparison import Comparison
from policy.rules.expression import Expression
from policy.rules.patterns import Pattern

_WORDS: Final[dict[object, str]] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "true or false",
    Pattern: "regular expression",
    Comparison: 'comparison, such as `"> 4"`',
    Expression: "CEL",
    Formula: "CEL",
    get_args(LevelsField)[0]: "mapping of string to list of string",
}
_HEAD: Final = """# Policy reference

Every field of every policy document, generated from the models (`make reference`).
[policy.md](policy.md) explains the documents.
"""
_HIVED_HEADING: Final = "Cluster, in HiveD's form"


def format_reference() -> str:
    """Write all documents, each with its entries."""
    parts = [_HEAD]
    for kind, model in MODELS.items():
        parts += _document(kind.value, model)
        parts += _factors() if kind is DocumentKind.QUEUES else ()
    parts += _document(_HIVED_HEADING, HivedClusterDocument)
    return "\n".join(parts)


def _document(heading: str, model: type[BaseModel]) -> Iterator[str]:
    yield f"## {heading}\n"
    for place, part in enumerate(_with_parts(model)):
        if place:
            yield f"### {_title(part)}\n"
        yield f"{_summary(part)}\n"
        yield "| Field | Value | Meaning |\n|---|---|---|"
        yield "\n".join(_row(name, field) for name, field in part.model_fields.items()) + "\n"


def _factors() -> Iterator[str]:
    yield "### Factors\n"
    yield "Each is a number from 0 to 1, without unit. `worth` says how long a wait 1 is worth.\n"
    yield "| Factor | 0 | 1 | Value |\n|---|---|---|---|"
    rows = (
        f"| `{one.name}` | {one.at_zero} | {one.at_one} | {one.value} |" for one in FACTORS.values()
    )
    yield "\n".join(rows) + "\n"


def _with_parts(model: type[BaseModel]) -> list[type[BaseModel]]:
    """List a model and the models inside it, each once, in order."""
    found = [model]
    for one in found:
        one.model_rebuild()  # resolves the name of a model that contains itself
        for field in one.model_fields.values():
            found += [part for part in models_in(field.annotation) if part not in found]
    return found


def _summary(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").split("\n\n")[0].replace("\n    ", " ")


def _title(model: type[BaseModel]) -> str:
    return model.__name__.removesuffix("Entry")


def _row(name: str, field: FieldInfo) -> str:
    meaning = (field.description or "").replace("|", "\\|")
    needed = "required" if field.is_required() else _default(field)
    value = f"{_value(field.annotation)}; {needed}" if needed else _value(field.annotation)
    return f"| `{field.alias or name}` | {value} | {meaning} |"


def _default(field: FieldInfo) -> str:
    """Describe the default of a field, unless it is empty."""
    default = field.get_default(call_default_factory=True)
    if default in (None, "", (), [], {}) or isinstance(default, BaseModel):
        return ""
    return f"default `{str(default).lower() if isinstance(default, bool) else default}`"


def _value(annotation: object) -> str:
    """Describe the values of a field."""
    if annotation in _WORDS:
        return _WORDS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{_title(annotation)}](#{_title(annotation).lower()})"
    arguments = get_args(annotation)
    match get_origin(annotation):
        case origin if origin is Annotated:
            return _value(arguments[0])
        case origin if origin is Literal:
            return " or ".join(f"`{value}`" for value in arguments)
        case origin if origin in (Union, UnionType):
            return " or ".join(_value(one) for one in arguments if one is not NoneType)
        case origin if origin in (list, tuple):
            return f"list of {_value(arguments[0])}"
        case origin if origin is dict:
            return f"mapping of {_value(arguments[0])} to {_value(arguments[1])}"
        case _:
            return "string"
