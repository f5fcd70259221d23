"""What rules and quotas decide together about one gang, as data and in words.

Rules come first. If they admit the gang, it is charged. If the charge exceeds a limit, `over_quota`
applies the choice of the group. Everything that a sentence says is in the fields, as in
`policy.rules.decision`.
"""

from dataclasses import dataclass

from policy.classes import Classes
from policy.quotas.limits import Exceeded
from policy.quotas.quota_table import FAIL, QUEUE, QuotaGroup
from policy.quotas.wording import describe_excess, describe_excess_shortly
from policy.rules.decision import WARNING_CHARS, Outcome, RuleDecision, class_text
from policy.submission import ClassName, GroupName
from policy.wording import name, plain


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
        if self.quota is None:
            return self.rules.format_refusal()
        return " ".join([self._headline(), *self.rules.hit_texts(), self._quota_text()])

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
        because = describe_excess_shortly(quota.exceeded[0])
        if quota.outcome is Outcome.QUEUED:
            return f"waits for room in the quotas of group {name(quota.group)}: {because}"
        if quota.class_after != quota.class_before:
            lowered = f"{class_text(quota.class_before)} to {name(quota.class_after)}"
            return f"quotas of group {name(quota.group)} lower {lowered}: {because}"
        return ""
