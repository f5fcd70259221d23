"""What the models of all documents share: strictness, common checks and types of fields.

A model checks what its document says by itself; what one document says about another is checked in
`policy.store`. The policy reference is generated from the models: the
description of a field is its documentation.

To add a kind, write a subclass of `Document` in a module of its own, and add it to
`policy.parser.MODELS`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
)
from pydantic.alias_generators import to_camel

from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.rules.comparison import Comparison, parse_comparison
from policy.rules.expression import Expression, parse_expression
from policy.rules.patterns import Pattern, parse_pattern
from policy.wording import join_path

API_VERSION: Final = "cellgate.io/v1"


class Strict(BaseModel):
    """Unknown keys are refused, no value is converted, and nothing changes afterwards."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


Location = tuple[str | int, ...]
"""The path to a value: keys of mappings and places in lists."""


def _has(value: object, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, dict) and part in value


class Document(Strict):
    """The base of all documents; a subclass adds its `kind`."""

    may_be_partial: ClassVar[bool] = False
    """Whether the readable part of a document with problems is compared with others."""

    api_version: Literal["cellgate.io/v1"] = Field(description="The version of this format.")

    @classmethod
    def problems_in(cls, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield the problems that concern several fields.

        It gets the raw data, so that these problems are reported together with those of single
        fields; it must skip values of the wrong type.
        """
        yield from ()

    def problems(self, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield the same for a document without problems of single fields."""
        return type(self).problems_in(data)

    @classmethod
    def take_away(cls, data: dict[str, Any], location: Location) -> None:
        """Remove a value that cannot be read, without making the rest seem wrong.

        A list is cut there, so that earlier places stay the same.
        """
        parent: Any = data
        for part in location[:-1]:
            parent = parent[part] if _has(parent, part) else None
        if not _has(parent, location[-1]):
            return
        if isinstance(parent, dict):
            del parent[location[-1]]
        else:
            del parent[location[-1] :]


def mapping_of(value: Plain) -> Mapping[str, Plain]:
    """Return a mapping; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def items_of(data: Mapping[str, Plain], key: str) -> list[Plain]:
    """Return a list; an empty one for anything else."""
    value = data.get(key)
    return value if isinstance(value, list) else []


def entries(data: Mapping[str, Plain], key: str) -> Iterator[tuple[int, Mapping[str, Plain]]]:
    """Yield the mappings of a list with their places; other entries are skipped."""
    for place, item in enumerate(items_of(data, key)):
        if isinstance(item, dict):
            yield place, item


def names_given_twice(
    data: Mapping[str, Plain], key: str, *, within: tuple[str | int, ...] = ()
) -> Iterator[Problem]:
    """Yield the entries of a list whose name an earlier one has."""
    first: dict[str, str] = {}
    for place, entry in entries(data, key):
        name, path = entry.get("name"), join_path((*within, key, place, "name"))
        if isinstance(name, str) and first.setdefault(name, path) != path:
            yield Problem(path, f"duplicate of {first[name]}")


_COST_OF_FAILURE: Final = 2_000


@dataclass(slots=True)
class CompileBudget:
    """How much of a document is compiled before it is refused: about two seconds of work.

    The size of each text is bounded; without this, thousands of the largest would take a minute.
    """

    left: int = 4_000_000

    def check(self) -> None:
        """Raise ValueError if nothing is left."""
        if self.left <= 0:
            what = "all regular expressions and `when` of the document together are too large"
            raise ValueError(f"is not compiled: {what}")


class Compiled(Protocol):
    """What a text of a document is compiled to."""

    @property
    def cost(self) -> int:
        """What it took to compile it."""


CompiledT = TypeVar("CompiledT", bound=Compiled)


def limited_by_budget(
    parse: Callable[[object], CompiledT],
) -> Callable[[object, ValidationInfo], CompiledT | None]:
    """Compile within the document's budget; treat an empty field like a missing one."""

    def parse_within_budget(value: object, info: ValidationInfo) -> CompiledT | None:
        if value is None or value == "":
            return None
        budget = info.context if isinstance(info.context, CompileBudget) else CompileBudget()
        budget.check()
        try:
            parsed = parse(value)
        except ValueError:
            budget.left -= _COST_OF_FAILURE
            raise
        budget.left -= parsed.cost
        return parsed

    return parse_within_budget


def _comparison_unless_empty(value: object) -> Comparison | None:
    return None if value is None or value == "" else parse_comparison(value)


_AsText = PlainSerializer(lambda value: None if value is None else str(value))
PatternField = Annotated[
    Pattern | None,
    PlainValidator(limited_by_budget(parse_pattern), json_schema_input_type=str | None),
    _AsText,
]
ComparisonField = Annotated[
    Comparison | None,
    PlainValidator(_comparison_unless_empty, json_schema_input_type=int | str | None),
    _AsText,
]
ExpressionField = Annotated[
    Expression | None,
    PlainValidator(limited_by_budget(parse_expression), json_schema_input_type=str | None),
    _AsText,
]
