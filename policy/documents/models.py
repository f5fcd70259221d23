"""The documents that admins write, as strict models: one per kind, shape and meaning of each field.

Only what a document says by itself is checked here; what one says about another is in
`policy.documents.checks`. The policy reference is generated from these models: a field's
description is its documentation.

To add a kind: a subclass of `Document` here, and its line in `policy.documents.documents.MODELS`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
)
from pydantic.alias_generators import to_camel

from policy.classes import MAX_CELL_PRIORITY, OPPORTUNISTIC, Classes, PriorityClass
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.rules.comparison import Comparison, parse_comparison
from policy.rules.expression import Expression, parse_expression
from policy.rules.patterns import Pattern, parse_pattern
from policy.rules.rules import FAIL, RETAIN, Rule, RuleTable
from policy.submission import ClassName
from policy.wording import describe, join_path, listing, quote

API_VERSION: Final = "cellgate.io/v1"
MAX_CLASSES: Final = 100
MAX_RULES: Final = 5000
MAX_NOTE_CHARS: Final = 500
_MAX_NAME_CHARS: Final = 253
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_KUBERNETES_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")


class Strict(BaseModel):
    """Nothing unknown, nothing converted, nothing changed afterwards."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


Location = tuple[str | int, ...]
"""The way to a value: keys of mappings and places of lists."""


def take_away(data: dict[str, Any], location: Location) -> None:
    """Take a value out of raw data; a list is cut off there, since places are what people count."""
    parent: Any = data
    for part in location[:-1]:
        parent = parent[part] if _has(parent, part) else None
    if not _has(parent, location[-1]):
        return
    if isinstance(parent, dict):
        del parent[location[-1]]
    else:
        del parent[location[-1] :]


def _has(value: object, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, dict) and part in value


class Document(Strict):
    """What every document starts with; a subclass adds its `kind`."""

    is_salvaged: ClassVar[bool] = False
    """Whether one that has problems is compared with others nevertheless: it can be built then."""

    api_version: Literal["cellgate.io/v1"] = Field(description="The version of this format.")

    @classmethod
    def problems_in(cls, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield what a model cannot say field by field.

        Gets the raw data, so that these problems are told together with those of shape: takes
        values of the wrong type in its stride.
        """
        yield from ()

    def problems(self, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield the same once the shape is right; a model may know them already by then."""
        return type(self).problems_in(data)

    @classmethod
    def take_away(cls, data: dict[str, Any], location: Location) -> None:
        """Take away what cannot be read, so that nothing wrong can be proved of the rest."""
        take_away(data, location)


def entries(data: Mapping[str, Plain], key: str) -> Iterator[tuple[int, Mapping[str, Plain]]]:
    """Yield the mappings of a list with their places, whatever else is in it."""
    items = data.get(key)
    for place, item in enumerate(items if isinstance(items, list) else ()):
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


def check_class_name(value: object) -> str:
    """Pass the name of a Kubernetes PriorityClass. Raises ValueError in plain words."""
    if not isinstance(value, str):
        raise ValueError(f"{describe(value)} is not a name")
    if value in (RETAIN, FAIL):
        raise ValueError(f"{quote(value)} has a meaning in rules and cannot be a class")
    if len(value) > _MAX_NAME_CHARS or not _KUBERNETES_NAME.fullmatch(value):
        allowed = "lower-case letters, digits, - and ., a letter or digit at both ends"
        raise ValueError(f"{quote(value)} is not a Kubernetes name ({allowed})")
    return value


def _check_then(value: object) -> str:
    if value in (RETAIN, FAIL):
        return str(value)
    try:
        return check_class_name(value)
    except ValueError as exc:
        raise ValueError(f"must be {RETAIN}, {FAIL} or the name of a class: {exc}") from exc


def _check_note(value: object) -> str:
    """Pass a note as one line of printable text; nothing is an empty one."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {describe(value)}")
    note = " ".join(value.split())
    if len(note) > MAX_NOTE_CHARS:
        raise ValueError(f"is {len(note)} characters long; at most {MAX_NOTE_CHARS} are allowed")
    if not note.isprintable():
        raise ValueError("must not hold characters that cannot be printed")
    return note


_COST_OF_FAILURE: Final = 2_000


@dataclass(slots=True)
class CompileBudget:
    """How much of a document is compiled before it is refused: about two seconds' worth.

    Each text is bounded; without this, thousands of the largest ones would take a minute.
    """

    left: int = 4_000_000

    def check(self) -> None:
        """Raise ValueError if nothing is left."""
        if self.left <= 0:
            what = "the document's regular expressions and `when` are too large together"
            raise ValueError(f"is not read: {what}")


def _unless_empty(
    parse: Callable[[object], Pattern | Expression],
) -> Callable[[object, ValidationInfo], Pattern | Expression | None]:
    """Let a field that is there but empty say as little as one that is not there."""

    def parse_within_budget(value: object, info: ValidationInfo) -> Pattern | Expression | None:
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
    PlainValidator(_unless_empty(parse_pattern), json_schema_input_type=str | None),
    _AsText,
]
ComparisonField = Annotated[
    Comparison | None,
    PlainValidator(_comparison_unless_empty, json_schema_input_type=int | str | None),
    _AsText,
]
ExpressionField = Annotated[
    Expression | None,
    PlainValidator(_unless_empty(parse_expression), json_schema_input_type=str | None),
    _AsText,
]
ClassNameField = Annotated[str, BeforeValidator(check_class_name)]


class ClassEntry(Strict):
    """One priority class."""

    name: ClassNameField = Field(description="The name of a Kubernetes PriorityClass.")
    cell_priority: int = Field(
        ge=OPPORTUNISTIC,
        le=MAX_CELL_PRIORITY,
        description="The priority of its gangs among the cells: 0 to 1000 are guaranteed, "
        "-1 is opportunistic. Lower than that of the class before.",
    )
    high: bool = Field(
        default=False, description="Whether its leaf cells count as `occupiedHigh` in rules."
    )


class ClassesDocument(Document):
    """The priority classes that managed pods can have."""

    is_salvaged: ClassVar[bool] = True
    kind: Literal["Classes"] = Field(description="Always `Classes`.")
    classes: list[ClassEntry] = Field(
        min_length=1, max_length=MAX_CLASSES, description="All classes, highest first."
    )
    default: ClassNameField = Field(description="The class of a managed pod that names none.")

    @classmethod
    def problems_in(cls, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield names given twice, priorities out of order, and a default that is not listed."""
        yield from names_given_twice(data, "classes")
        yield from _priorities_out_of_order(data)
        given = [entry.get("name") for _, entry in entries(data, "classes")]
        names = list(dict.fromkeys(name for name in given if isinstance(name, str)))
        default = data.get("default")
        if isinstance(default, str) and names and default not in names:
            shown = listing([quote(name) for name in names[:MAX_CLASSES]])
            yield Problem("default", f"{quote(default)} is not one of the classes {shown}")

    @classmethod
    def take_away(cls, data: dict[str, Any], location: Location) -> None:
        """Keep the names of all classes: other documents are about them."""
        match location:
            case ("classes", int(place), "cellPriority"):
                data["classes"][place]["cellPriority"] = OPPORTUNISTIC
            case ("classes", int(place)) if isinstance(data["classes"][place], dict):
                data["classes"][place].setdefault("cellPriority", OPPORTUNISTIC)
            case ("default",):
                data["default"] = "default"
            case _:
                take_away(data, location)

    def build(self) -> Classes:
        """Make what decisions work with."""
        classes = [
            PriorityClass(
                name=ClassName(entry.name), cell_priority=entry.cell_priority, high=entry.high
            )
            for entry in self.classes
        ]
        return Classes.of(classes, default=ClassName(self.default))


def _priorities_out_of_order(data: Mapping[str, Plain]) -> Iterator[Problem]:
    above: tuple[int, int] | None = None
    for place, entry in entries(data, "classes"):
        priority = entry.get("cellPriority")
        if not isinstance(priority, int) or isinstance(priority, bool):
            continue
        if above is not None and priority >= above[1]:
            path = join_path(("classes", place, "cellPriority"))
            higher = f"{join_path(('classes', above[0], 'cellPriority'))}, which is {above[1]}"
            yield Problem(path, f"must be lower than {higher}, because the highest class is first")
        above = (place, priority)


class RuleEntry(Strict):
    """One rule; a field that is empty or not there matches all, every other one must match."""

    user: PatternField = Field(default=None, description="Found in the submitter's name.")
    group: PatternField = Field(
        default=None, description="Found in the name of at least one of the submitter's groups."
    )
    vc: PatternField = Field(default=None, description="Found in the name of the virtual cluster.")
    priority: PatternField = Field(
        default=None, description="Found in the name of the class, as lowered so far."
    )
    current: ComparisonField = Field(
        default=None, description="How many leaf cells this gang asks for."
    )
    occupied: ComparisonField = Field(
        default=None, description="How many leaf cells the submitter would then hold."
    )
    occupied_high: ComparisonField = Field(
        default=None,
        description="The same in high classes; this gang counts while its class is a high one.",
    )
    when: ExpressionField = Field(default=None, description="A CEL expression.")
    then: Annotated[str, BeforeValidator(_check_then)] = Field(
        description="`retain` or `fail`, which stop, or the name of a lower class, which does not."
    )
    note: Annotated[str, BeforeValidator(_check_note)] = Field(
        default="", description="Told to the submitter."
    )

    def build(self) -> Rule:
        """Make what decisions work with."""
        return Rule(**{name: getattr(self, name) for name in type(self).model_fields})


_CONDITIONS: Final = frozenset(
    field.alias for name, field in RuleEntry.model_fields.items() if name not in ("then", "note")
)


class RulesDocument(Document):
    """Rules that lower or refuse what users ask for, tried from top to bottom."""

    is_salvaged: ClassVar[bool] = True
    kind: Literal["Rules"] = Field(description="Always `Rules`.")
    rules: list[RuleEntry] = Field(max_length=MAX_RULES, description="All rules, in order.")

    @classmethod
    def take_away(cls, data: dict[str, Any], location: Location) -> None:
        """Let a rule that can be read in part only be for nobody else: it covers no other."""
        take_away(data, location)
        match location:
            case ("rules", int(place), str(name)) if name in _CONDITIONS:
                data["rules"][place]["when"] = f"user == 'rule {place} cannot be read'"

    def build(self) -> RuleTable:
        """Make what decisions work with."""
        return RuleTable(entry.build() for entry in self.rules)
