"""Decide by what this process knows, without waiting: previews, and whenever the ledger is away.

What is known is the usage that was read last, and what was let in here since. So a submitter gets
no further than to the limits by that, however many ask at once; what other replicas have let in
meanwhile is not known (`docs/decisions/0011-admission.md`).
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final, Protocol

from policy.errors import RequestError
from policy.quotas.admission import Admission, OverQuota, over_quota
from policy.quotas.limits import Exceeded, Scope
from policy.rules.decision import Outcome, RuleDecision
from policy.submission import Usage
from state.ledger.assumed_charges import AssumedCharges
from state.ledger.ledger import Charge
from state.ledger.ledger import Usage as HeldUsage
from webhook.admission.growth import growth_limits, judge_growth, refuse_growth, too_much
from webhook.admission.pod_group_sizes import check_fixed
from webhook.admission.recent_gangs import Recent, RecentGangs
from webhook.admission.usage_limits import find_exceeded
from webhook.admission.verdict import (
    Request,
    Verdict,
    charge_of,
    decide,
    decided,
    follow,
    with_member,
)

_LEDGER_AWAY: Final = "the ledger does not answer: decided by the usage that was known last"
_USAGE_UNKNOWN: Final = "the ledger does not answer and usage is not known: quotas are not applied"


class LiveUsage(Protocol):
    """Usage in memory: `state.ledger.usage_cache` or a twin of it."""

    assumed: AssumedCharges
    """What was let in and the ledger may not have heard of."""

    @property
    def is_known(self) -> bool:
        """Whether usage was ever read."""

    def usage(self, scope: Scope) -> HeldUsage:
        """Return what a scope holds and has used, to the best of our knowledge."""

    def held(self, scope: Scope) -> HeldUsage:
        """Return the same, leaf-cell-time aside: that may be old."""

    def assume(self, charge: Charge, *, held: int = 0) -> None:
        """Count a charge that the ledger may not have heard of, but for what it counts already."""


class MemoryDecider:
    """Decides about gangs by what is in memory."""

    def __init__(
        self, *, usage: LiveUsage, recent: RecentGangs, on_debt: Callable[[], None]
    ) -> None:
        """`on_debt` hears that something was let in which the ledger has to be told."""
        self._usage = usage
        self._recent = recent
        self._on_debt = on_debt

    def known_usage(self, request: Request) -> Usage | None:
        """Return what the submitter holds; None if that was never known."""
        if not self._usage.is_known:
            return None
        held = self._usage.held(Scope(request.submission.user))
        return Usage(occupied=held.leaf_cells, occupied_high=held.leaf_cells_high)

    def preview(self, request: Request) -> Verdict:
        """Decide without any effect."""
        known = self.known_usage(request)
        decision = decide(request, known)
        recent = self._recent.find(request.submission.gang)
        if recent is not None:
            # One of its name that asks for something else may have ended: the ledger will tell.
            with suppress(RequestError):
                return _follow_recent(request, recent, Admission(rules=decision))
        over = None if known is None else self._find_over(request, decision)
        return decided(request, Admission(rules=decision, quota=over))

    def admit(self, request: Request) -> Verdict:
        """Decide, and count what is let in; RequestError if the gang is another one."""
        known = self.known_usage(request)
        decision = decide(request, known)
        recent = self._recent.find(request.submission.gang)
        if recent is not None:
            return self._follow(request, recent, Admission(rules=decision, notes=(_LEDGER_AWAY,)))
        over = None if known is None else self._find_over(request, decision)
        note = _USAGE_UNKNOWN if known is None else _LEDGER_AWAY
        verdict = decided(request, Admission(rules=decision, quota=over, notes=(note,)))
        if verdict.outcome is Outcome.ADMITTED:
            check_fixed(request.fixed_class, verdict.final_class)
            self._let_in(request, charge_of(request, verdict.final_class))
        return verdict

    def remember(self, request: Request, charge: Charge, *, is_queued: bool = False) -> None:
        """The ledger may be away, or not know of it, when the gang's next member comes."""
        if not request.is_alone:
            self._recent.note(charge, is_queued=is_queued)

    def _let_in(self, request: Request, charge: Charge, *, held: int = 0) -> None:
        self._usage.assume(charge, held=held)
        self.remember(request, charge)
        self._on_debt()

    def _follow(self, request: Request, recent: Recent, admission: Admission) -> Verdict:
        """Give a member what its gang has, and charge the gang for one that asks for more."""
        verdict = _follow_recent(request, recent, admission)
        charge, grown = recent.charge, with_member(request, recent.charge)
        if recent.is_queued:
            return verdict
        if grown.leaf_count == charge.leaf_count:
            self.remember(request, grown)
            return verdict
        known = self.known_usage(request)
        growth = judge_growth(request, charge, grown.leaf_count, usage=known)
        if growth.is_refused:
            return refuse_growth(request, charge, growth, notes=admission.notes)
        exceeded = self._find_outgrown(request, charge, grown)
        if exceeded:
            return too_much(request, charge, verdict, exceeded)
        self._let_in(request, grown, held=charge.leaf_count)
        return verdict

    def _find_outgrown(
        self, request: Request, charge: Charge, grown: Charge
    ) -> tuple[Exceeded, ...]:
        """Compare a gang that grows with the limits, as if it were new: what it has goes first."""
        if not self._usage.is_known:
            return ()
        return find_exceeded(
            grown,
            growth_limits(request, charge),
            lambda scope: _without(self._usage.usage(scope), charge),
        )

    def _find_over(self, request: Request, decision: RuleDecision) -> OverQuota | None:
        """Compare with quotas in memory."""
        if request.group is None or decision.outcome is Outcome.REFUSED:
            return None
        charge = charge_of(request, decision.final_class)
        limits = request.group.limits(request.submission.user)
        exceeded = find_exceeded(charge, limits, self._usage.usage)
        if not exceeded:
            return None
        return over_quota(decision, request.group, exceeded, classes=request.policy.classes)


def _follow_recent(request: Request, recent: Recent, admission: Admission) -> Verdict:
    return replace(follow(request, recent.charge, admission), is_queued=recent.is_queued)


def _without(usage: HeldUsage, charge: Charge) -> HeldUsage:
    by_type = dict(usage.by_leaf_type)
    if charge.leaf_type is not None:
        by_type[charge.leaf_type] = by_type.get(charge.leaf_type, 0) - charge.leaf_count
    return replace(
        usage,
        leaf_cells=usage.leaf_cells - charge.leaf_count,
        leaf_cells_high=usage.leaf_cells_high - charge.leaf_count * charge.is_high,
        gangs=usage.gangs - 1,
        by_leaf_type=by_type,
    )
