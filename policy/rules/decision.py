"""What the rules decided about one submission, as data and in words.

Everything that a sentence says is in the fields, so the same decision always reads the same: in a
refusal, a `Warning:` line, the log and `cellgate explain`.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from policy.rules.comparison import Comparison
from policy.rules.matching import Matches
from policy.submission import ClassName, Occupancy, Submission
from policy.wording import count_of, listing, name, plain

NOTE_CHARS: Final = 200
WARNING_CHARS: Final = 256
"""kubectl cuts longer warnings. Kubernetes advises 120, which only a long note exceeds."""


class Outcome(StrEnum):
    """Whether the gang may be created."""

    ADMITTED = "admitted"
    REFUSED = "refused"
    QUEUED = "queued"
    """It waits for room within its quotas."""


class Quantity(StrEnum):
    """A number that rules compare, by its name in a rule."""

    CURRENT = "current"
    OCCUPIED = "occupied"
    OCCUPIED_HIGH = "occupiedHigh"
    OCCUPIED_LOW = "occupiedLow"

    @property
    def where(self) -> str:
        """Which of the submitter's leaf cells count, for sentences."""
        return _WHERE.get(self, "")

    def held(self, usage: Occupancy) -> int:
        """Return what of it the submitter holds without this gang."""
        match self:
            case Quantity.OCCUPIED:
                return usage.occupied
            case Quantity.OCCUPIED_HIGH:
                return usage.occupied_high
            case Quantity.OCCUPIED_LOW:
                return usage.occupied_low
            case Quantity.CURRENT:
                return 0


_WHERE: Final = {
    Quantity.OCCUPIED_HIGH: " in high classes",
    Quantity.OCCUPIED_LOW: " in classes that are not high",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedNumber:
    """One number that a rule compared, this gang included."""

    quantity: Quantity
    value: int
    comparison: Comparison

    @property
    def excess(self) -> int | None:
        """With how many leaf cells fewer the rule would not match; None if that is not enough."""
        excess = self.comparison.excess(self.value)
        if excess is not None and self.quantity is Quantity.CURRENT and excess >= self.value:
            return None  # a gang that asks for nothing is not a gang
        return excess


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A rule that took effect."""

    index: int
    """Place in the document, from 0; messages count from 1."""
    then: str
    note: str
    class_before: ClassName
    class_after: ClassName
    numbers: tuple[ComparedNumber, ...] = ()
    conditions: tuple[tuple[str, str], ...] = ()
    """The other fields of the rule, each with its text."""

    @property
    def number(self) -> int:
        """The rule's number, from 1."""
        return self.index + 1


class WarningKind(StrEnum):
    """Why a rule could not be applied."""

    USAGE_UNKNOWN = "usage-unknown"
    WHEN_FAILED = "when-failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleWarning:
    """A rule that could not be applied."""

    index: int
    """Place of the rule, from 0."""
    kind: WarningKind
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Range:
    """Up to which usage, without this gang, the rules decide the same; None: for any usage.

    Without this gang, since its class changes while rules lower it, and with it whether it counts
    as high.

    Usage may have grown between a decision and its charge. Only beyond this range must the gang be
    decided again: most submissions of one user can be charged in any order.
    """

    occupied: int | None = None
    occupied_high: int | None = None
    occupied_low: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDecision:
    """The decision of a rule table about one submission."""

    submission: Submission
    usage: Occupancy | None
    outcome: Outcome
    final_class: ClassName
    """For a refusal: the class as lowered so far."""
    hits: tuple[Hit, ...] = ()
    warnings: tuple[RuleWarning, ...] = ()
    valid: Range = Range()
    needs_usage: bool = False
    """Whether the decision depends on usage."""
    matches: Matches = field(default=Matches(), compare=False, repr=False)
    """Which rules match names: what a decision without the names needs."""

    @property
    def requested_class(self) -> ClassName:
        """The class that the submitter asked for."""
        return self.submission.requested_class

    @property
    def is_lowered(self) -> bool:
        """Whether the gang may run, in a lower class than asked for."""
        return self.outcome is Outcome.ADMITTED and self.final_class != self.requested_class

    @property
    def asked(self) -> str:
        """The submitter and the request, as the beginning of a sentence."""
        cells = count_of(self.submission.leaf_count, "leaf cell")
        return f"{_user(self)} asked for {cells} in {class_text(self.requested_class)}"

    @property
    def holdings(self) -> str:
        """What the submitter holds, as a sentence."""
        if self.usage is None:
            return f"The usage of {_user(self)} is not known at the moment."
        cells = count_of(self.usage.occupied, "leaf cell")
        return f"{_user(self)} holds {cells}, {self.usage.occupied_high} of them in high classes."

    def hit_texts(self) -> tuple[str, ...]:
        """Describe every rule that took effect, its note, and what would change it."""
        return tuple(_hit_text(hit, self) for hit in self.hits)

    def explain(self) -> tuple[str, ...]:
        """Describe the whole decision: who, which rules, which numbers; a few sentences each."""
        hits = self.hit_texts() or ("No rule applied.",)
        return (_headline(self), self.holdings, *hits, *self.warning_texts())

    def warning_texts(self) -> tuple[str, ...]:
        """Describe the rules that could not be applied."""
        return tuple(_warning_text(warning, self) for warning in self.warnings)

    def format_refusal(self) -> str:
        """Explain a refusal to the submitter: every rule, its note, and what would change it."""
        return " ".join([_headline(self), self.holdings, *self.hit_texts()])

    def format_warnings(self) -> tuple[str, ...]:
        """Write the lines that kubectl shows as `Warning:`, none for a refusal.

        A `when` that failed concerns admins: it is in `explain`, not here.
        """
        if self.outcome is Outcome.REFUSED:
            return ()
        # A note is shown to the submitter, also that of a rule which keeps the class.
        shown = [hit for hit in self.hits if hit.class_after != hit.class_before or hit.note]
        unknown = [item for item in self.warnings if item.kind is WarningKind.USAGE_UNKNOWN]
        lines = [_warning_line(hit, self) for hit in shown]
        lines += [_warning_text(warning, self) for warning in unknown]
        return tuple(plain(f"cellgate: {line}", limit=WARNING_CHARS) for line in lines)


def _headline(decision: RuleDecision) -> str:
    if decision.outcome is Outcome.REFUSED:
        return f"{decision.asked}: refused by rule {decision.hits[-1].number}."
    if decision.is_lowered:
        return f"{decision.asked} and gets {class_text(decision.final_class)}."
    return f"{decision.asked} and gets it."


def _hit_text(hit: Hit, decision: RuleDecision) -> str:
    numbers = [_number_text(number, decision) for number in hit.numbers]
    because = f": {' and '.join(numbers)}" if numbers else ""
    return f"Rule {_rule(hit)} {_effect(hit)}{because}.{_way_out(hit)}"


def _effect(hit: Hit) -> str:
    match hit.then:
        case "fail":
            return f"refuses {class_text(hit.class_before)}"
        case "retain":
            return f"keeps {class_text(hit.class_before)}"
        case _:
            lower = name(hit.class_after)
            return f"lowers {class_text(hit.class_before)} to {lower}"


def _number_text(number: ComparedNumber, decision: RuleDecision) -> str:
    if number.quantity is Quantity.CURRENT or decision.usage is None:
        return f"{number.quantity} is {number.value}, which is {number.comparison}"
    held = number.quantity.held(decision.usage)
    # A gang counts in high classes or in the others, by its class as lowered so far.
    asked = f", {number.value - held} asked for" if number.value > held else ""
    total = f"{number.quantity} would be {number.value} ({held} held{asked})"
    return f"{total}, which is {number.comparison}"


def _way_out(hit: Hit) -> str:
    """Say what the submitter could change, if anything."""
    if hit.then == "retain":
        return ""
    ways = [(number.excess, number) for number in hit.numbers if number.excess is not None]
    if ways:
        fewest, number = min(ways, key=lambda way: way[0])
        verb = "asked for" if number.quantity is Quantity.CURRENT else "held or asked for"
        cells = f"{fewest} fewer leaf cell{'s'[: fewest != 1]}"
        return f" With {cells} {verb}{number.quantity.where} the rule would not apply."
    return "" if hit.numbers else f" It applies to {_audience(hit)}."


def _audience(hit: Hit) -> str:
    fields = [f"{field} {name(text)}" for field, text in hit.conditions]
    by_expression = any(field == "when" for field, _ in hit.conditions)
    always = "" if by_expression else ", regardless of what is asked for or held"
    return f"{listing(fields) or 'all gangs'}{always}"


def _warning_line(hit: Hit, decision: RuleDecision) -> str:
    numbers = [_number_text(number, decision) for number in hit.numbers]
    because = f" because {' and '.join(numbers)}" if numbers else ""
    # The numbers come before the note: a long note is what may be cut.
    note = f": {plain(hit.note, limit=NOTE_CHARS)}" if hit.note else ""
    return f"rule {hit.number} {_effect(hit)}{because}{note}"


def _warning_text(warning: RuleWarning, decision: RuleDecision) -> str:
    rule = f"rule {warning.index + 1}"
    if warning.kind is WarningKind.WHEN_FAILED:
        return (
            f"{rule.capitalize()} does not match: its `when` cannot be evaluated: {warning.detail}."
        )
    kept = class_text(decision.final_class)
    return f"Usage is not known at the moment, so {rule} is not applied and {kept} is kept."


def _user(decision: RuleDecision) -> str:
    return name(decision.submission.user)


def class_text(class_name: ClassName) -> str:
    """Name a class in a sentence."""
    return f"class {name(class_name)}" if class_name else "the default class"


def _rule(hit: Hit) -> str:
    return f"{hit.number} ({plain(hit.note, limit=NOTE_CHARS)})" if hit.note else str(hit.number)
