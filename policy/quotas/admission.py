"""What rules and quotas decide together about one gang, as data and in words.

Rules come first. If they admit the gang, it is charged. If the charge exceeds a limit, `over_quota`
applies the choice of the group. Everything that a sentence says is in the fields, as in
`policy.rules.decision`.
"""

from dataclasses import dataclass
from typing import Final

from policy.classes import Classes
from policy.pod_resources import CPU, MEMORY, show_amount
from policy.quotas.limits import Exceeded, Limit, Measure, Scope
from policy.quotas.quota_table import FAIL, QUEUE, QuotaGroup
from policy.rules.decision import WARNING_CHARS, Outcome, RuleDecision, class_text
from policy.submission import ClassName, GroupName
from policy.wording import are, count_of, name, plain

_PERIODS: Final = {
    Measure.HOURS_DAY: ("today", "day"),
    Measure.HOURS_WEEK: ("this week", "week"),
    Measure.HOURS_MONTH: ("this month", "month"),
}
_RESOURCES: Final = {Measure.CPU_MILLIS: CPU, Measure.MEMORY_BYTES: MEMORY}


@dataclass(frozen=True, slots=True, kw_only=True)
class OverQuota:
    """What happens to a gang that exceeds limits."""

    group: GroupName
    outcome: Outcome
    exceeded: tuple[Exceeded, ...]
    class_before: ClassName
    class_after: ClassName

    @property
    def reasons(self) -> str:
        """All exceeded limits, as sentences."""
        return " ".join(describe_excess(one) for one in self.exceeded)


def over_quota(
    decision: RuleDecision,
    group: QuotaGroup,
    exceeded: tuple[Exceeded, ...],
    *,
    classes: Classes,
) -> OverQuota:
    """Apply the group's choice to a gang that rules admit and that exceeds limits."""
    before = decision.final_class
    outcomes = {FAIL: Outcome.REFUSED, QUEUE: Outcome.QUEUED}
    over = ClassName(group.over)
    is_lowered = group.lowers and classes.is_lower(over, before)
    return OverQuota(
        group=group.name,
        outcome=outcomes.get(group.over, Outcome.ADMITTED),
        exceeded=exceeded,
        class_before=before,
        class_after=over if is_lowered else before,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionDecision:
    """The decision about one gang."""

    rules: RuleDecision
    quota: OverQuota | None = None
    """None if the gang is within its quotas, or if rules refused it."""
    notes: tuple[str, ...] = ()
    """Further warnings, such as that the quota database is unavailable."""

    @property
    def outcome(self) -> Outcome:
        """Whether the gang may be created, and if so whether it waits."""
        return self.rules.outcome if self.quota is None else self.quota.outcome

    @property
    def final_class(self) -> ClassName:
        """The class it gets; for a refusal, as lowered so far."""
        return self.rules.final_class if self.quota is None else self.quota.class_after

    @property
    def rises_to(self) -> ClassName | None:
        """The class that quotas keep from a gang that runs beyond them; None within quota."""
        is_beyond = self.quota is not None and self.outcome is Outcome.ADMITTED
        return self.quota.class_before if self.quota is not None and is_beyond else None

    @property
    def is_lowered(self) -> bool:
        """Whether the gang may be created, in a lower class than asked for."""
        is_in = self.outcome is not Outcome.REFUSED
        return is_in and self.final_class != self.rules.requested_class

    def explain(self) -> tuple[str, ...]:
        """Describe the whole decision, a few sentences per element."""
        if self.quota is None:
            return (*self.rules.explain(), *self.notes)
        hits = self.rules.hit_texts() or ("No rule applied.",)
        lines = (self._headline(), self.rules.holdings, *hits, self._quota_text())
        return (*lines, *self.rules.warning_texts(), *self.notes)

    def format_refusal(self) -> str:
        """Explain a refusal to the submitter: every rule and every exceeded limit."""
        notes = [f"{note}." for note in self.notes]
        if self.quota is None:
            return " ".join([self.rules.format_refusal(), *notes])
        return " ".join([self._headline(), *self.rules.hit_texts(), self._quota_text(), *notes])

    def format_warnings(self) -> tuple[str, ...]:
        """Write the lines that kubectl shows as `Warning:`, none for a refusal."""
        if self.outcome is Outcome.REFUSED:
            return ()
        lines = [*self.notes] if self.quota is None else [self._quota_line(), *self.notes]
        ours = [plain(f"cellgate: {line}", limit=WARNING_CHARS) for line in lines if line]
        return (*self.rules.format_warnings(), *ours)

    def _headline(self) -> str:
        assert self.quota is not None
        quotas = f"the quotas of group {name(self.quota.group)}"
        match self.outcome:
            case Outcome.REFUSED:
                return f"{self.rules.asked}: refused by {quotas}."
            case Outcome.QUEUED:
                return f"{self.rules.asked} and waits: it is over {quotas}."
            case Outcome.ADMITTED if self.is_lowered:
                return f"{self.rules.asked} and gets {class_text(self.final_class)}."
            case _:
                return f"{self.rules.asked} and gets it, beyond {quotas}."

    def _quota_text(self) -> str:
        assert self.quota is not None
        if self.quota.class_after != self.quota.class_before:
            lowered = f"to {name(self.quota.class_after)}: {self.quota.reasons}"
            return f"Over quota, {class_text(self.quota.class_before)} is lowered {lowered}"
        return self.quota.reasons

    def _quota_line(self) -> str:
        """Write one warning about the first limit; the refusal and the log name all of them."""
        assert self.quota is not None
        quota = self.quota
        because = _describe_excess_shortly(quota.exceeded[0])
        if quota.outcome is Outcome.QUEUED:
            return f"waits for room in the quotas of group {name(quota.group)}: {because}"
        if quota.class_after != quota.class_before:
            lowered = f"{class_text(quota.class_before)} to {name(quota.class_after)}"
            rises = f"it rises to {name(quota.class_before)} once the quotas have room"
            return f"quotas of group {name(quota.group)} lower {lowered}: {because}; {rises}"
        return ""


def describe_excess(exceeded: Exceeded) -> str:
    """Describe an exceeded limit, and what would fit, as sentences."""
    return f"{_capital(_describe_excess_shortly(exceeded))}.{_way_out(exceeded)}"


def describe_room(exceeded: Exceeded) -> str:
    """Say how much of a limit is used, and how much a gang needs, as part of a sentence."""
    used, measure = describe_use(exceeded.limit, exceeded.used), exceeded.limit.measure
    if measure.is_hours:
        return used
    needs = "a gang" if measure is Measure.GANGS else f"{amount_text(measure, exceeded.asked)} more"
    return f"{used}, and {needs} must fit"


def describe_use(limit: Limit, used: float) -> str:
    """Say how much of a limit is used, as part of a sentence."""
    who = _who(limit.scope)
    if limit.measure in _PERIODS:
        when, _ = _PERIODS[limit.measure]
        return f"{who} used {used:.1f} of {limit.most:g} leaf-cell-hours {when}"
    if limit.measure is Measure.HOURS_TOTAL:
        return f"{who} used {used:.1f} of {limit.most:g} leaf-cell-hours in total"
    if limit.measure.is_amount:
        number, _, _ = amount_text(limit.measure, used).partition(" ")
        return f"{who} holds {number} of {amount_text(limit.measure, limit.most)} within quota"
    if limit.measure is Measure.GANGS:
        return f"{who} has {round(used)} of {limit.most:g} gangs within quota"
    where = _where_of(limit)
    return f"{who} holds {round(used)} of {limit.most:g} leaf cells{where} within quota"


def _describe_excess_shortly(exceeded: Exceeded) -> str:
    """Describe an exceeded limit as part of a sentence."""
    limit, who = exceeded.limit, _who(exceeded.limit.scope)
    if limit.measure in _PERIODS:
        when, period = _PERIODS[limit.measure]
        used = f"{who} used {exceeded.used:.1f} leaf-cell-hours {when}"
        return f"{used}; the limit is {limit.most:g} a {period}"
    if limit.measure is Measure.HOURS_TOTAL:
        used = f"{who} used {exceeded.used:.1f} leaf-cell-hours in total"
        return f"{used}; the limit is {limit.most:g}"
    if limit.measure.is_amount:
        holds = f"{who} holds {amount_text(limit.measure, exceeded.used)}"
        asked = f"the gang asks for {amount_text(limit.measure, exceeded.asked)} more"
        return f"{holds} and {asked}; the limit is {amount_text(limit.measure, limit.most)}"
    if limit.measure is Measure.GANGS:
        gangs = count_of(round(exceeded.used), "gang")
        return f"{who} has {gangs}; the limit is {limit.most:g}"
    cells = count_of(round(exceeded.used), "leaf cell")
    asked = f"{exceeded.asked} more {are(exceeded.asked)} asked for"
    return f"{who} holds {cells}{_where_of(limit)} and {asked}; the limit is {limit.most:g}"


def amount_text(measure: Measure, amount: float) -> str:
    """Write an amount of a measure: CPU and memory with their units, all else as a number."""
    resource = _RESOURCES.get(measure)
    return f"{amount:g}" if resource is None else show_amount(resource, round(amount))


def _where_of(limit: Limit) -> str:
    match limit.measure:
        case Measure.LEAF_CELLS_HIGH:
            return " in high classes"
        case Measure.LEAF_CELLS_OF_TYPE:
            return f" of type {name(limit.leaf_type or '')}"
        case _:
            return ""


def _way_out(exceeded: Exceeded) -> str:
    """Say what would fit, if the numbers show it."""
    measure, most = exceeded.limit.measure, exceeded.limit.most
    if measure in _PERIODS:
        return f" It would fit in the next {_PERIODS[measure][1]} (UTC)." if most > 0 else ""
    if measure is Measure.HOURS_TOTAL:
        return " An admin can raise the limit."
    if measure.is_amount:
        room = most - exceeded.used
        return f" A gang with {amount_text(measure, room)} would fit." if room > 0 else ""
    if measure is Measure.GANGS:
        return _way_out_of_gangs(round(exceeded.used) + 1 - round(most)) if most > 0 else ""
    room = round(most - exceeded.used)
    if room > 0:
        return f" A gang of {count_of(room, 'leaf cell')} would fit."
    if exceeded.asked > most:
        return ""
    missing = round(exceeded.used) + exceeded.asked - round(most)
    return f" It would fit once {count_of(missing, 'leaf cell')} {are(missing)} free again."


def _way_out_of_gangs(missing: int) -> str:
    have = "has" if missing == 1 else "have"
    return f" It would fit once {count_of(missing, 'gang')} {have} ended."


def _who(scope: Scope) -> str:
    group = f"group {name(scope.group or '')}"
    if scope.user is None:
        return group
    user = name(scope.user)
    return f"{user} in {group}" if scope.group else user


def _capital(text: str) -> str:
    """Begin a sentence with a capital letter, unless it begins with a user's name."""
    return f"G{text[1:]}" if text.startswith("group ") else text
