"""The Rules document: rules that lower or refuse what users ask for, from top to bottom."""

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field

from policy.documents.models import (
    ComparisonField,
    Document,
    ExpressionField,
    Location,
    PatternField,
    Strict,
)
from policy.documents.names import check_line, class_or
from policy.rules.expression import VARIABLES
from policy.rules.rule_table import FAIL, RETAIN, Rule, RuleTable
from policy.wording import describe

MAX_RULES: Final = 5000
MAX_NOTE_CHARS: Final = 500


def _check_note(value: object) -> str:
    """Pass a note as one line of printable text; null is an empty one."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {describe(value)}")
    return check_line(" ".join(value.split()), most=MAX_NOTE_CHARS)


class RuleEntry(Strict):
    """One rule. A field that is empty or missing matches all; every other field must match."""

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
    occupied_low: ComparisonField = Field(
        default=None,
        description="The same in classes that are not high; this gang counts while its class is "
        "none of the high ones.",
    )
    when: ExpressionField = Field(
        default=None,
        description="A CEL expression over "
        + ", ".join(f"`{name}`" for name in VARIABLES)
        + ", such as `'students' in groups && labels.stage != 'final'`.",
    )
    then: Annotated[str, BeforeValidator(class_or(RETAIN, FAIL))] = Field(
        description="`retain` or `fail`, which stop, or the name of a lower class, after which the "
        "next rules are tried."
    )
    note: Annotated[str, BeforeValidator(_check_note)] = Field(
        default="", description="Shown to the submitter."
    )

    def build(self) -> Rule:
        """Build the rules for decisions."""
        return Rule(**{name: getattr(self, name) for name in type(self).model_fields})


_CONDITIONS: Final = frozenset(
    field.alias for name, field in RuleEntry.model_fields.items() if name not in ("then", "note")
)


class RulesDocument(Document):
    """Rules that lower or refuse what users ask for, tried from top to bottom."""

    may_be_partial: ClassVar[bool] = True
    kind: Literal["Rules"] = Field(description="Always `Rules`.")
    rules: list[RuleEntry] = Field(max_length=MAX_RULES, description="All rules, in order.")
    impossible: Literal["warn", "refuse"] = Field(
        default="warn",
        description="What happens at apply to a workload that can never start: `warn` tells its "
        "submitter, `refuse` refuses it.",
    )

    @classmethod
    def take_away(cls, data: dict[str, Any], location: Location) -> None:
        """Make a rule that can be read only in part match no gang, so that it covers no other."""
        super().take_away(data, location)
        match location:
            case ("rules", int(place), str(name)) if name in _CONDITIONS:
                data["rules"][place]["when"] = f"user == 'rule {place} cannot be read'"

    def build(self) -> RuleTable:
        """Build the rules for decisions."""
        return RuleTable(entry.build() for entry in self.rules)
