"""Decide by what is in memory: previews, and admissions while the ledger is unavailable.

Memory holds the usage that was read last and what this replica has admitted since. So a submitter
cannot exceed the limits at one replica, however many requests come at once; what other replicas
have admitted meanwhile is unknown (`docs/decisions/0011-admission.md`).
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Protocol

from policy.errors import RequestError
from policy.quotas.admission import AdmissionDecision, OverQuota, over_quota
from policy.quotas.limits import Exceeded, Scope
from policy.rules.decision import Outcome, RuleDecision
from policy.submission import Occupancy
from state.ledger.assumed_charges import AssumedCharges
from state.ledger.ledger import Charge, find_exceeded
from state.ledger.usage import HeldSums, ScopeUsage
from webhook.admission import growth
from webhook.admission.charge_request import ChargeRequest, build_charge, with_member
from webhook.admission.gang_decision import (
    GangDecision,
    apply_rules,
    check_fixed_class,
    decide_now,
    follow_charge,
)
from webhook.admission.recent_gangs import RecentGang, RecentGangs

LEDGER_UNAVAILABLE: Final = "Quota database unavailable; last known usage applied"
USAGE_UNKNOWN: Final = "Quota database unavailable and usage unknown; quotas not applied"


class LiveUsage(Protocol):
    """Usage in memory: `state.ledger.usage_cache`, or a substitute in tests."""

    assumed: AssumedCharges
    """What was admitted here and is not known to be in the ledger."""

    @property
    def is_known(self) -> bool:
        """Whether usage was ever read."""

    def usage(self, scope: Scope) -> ScopeUsage:
        """Return what a scope holds and has used, as far as known."""

    def held(self, scope: Scope) -> ScopeUsage:
        """Return the same without leaf-cell-time, which may be outdated."""

    def assume(self, charge: Charge, *, held: int = 0) -> None:
        """Count a charge that may not be in the ledger, except the `held` leaf cells that are."""


class MemoryDecider:
    """Decides about gangs by what is in memory."""

    def __init__(
        self, *, usage: LiveUsage, recent: RecentGangs, on_uncharged: Callable[[], None]
    ) -> None:
        """`on_uncharged` runs after a gang was admitted that the ledger must still be charged."""
        self._usage = usage
        self._recent = recent
        self._on_uncharged = on_uncharged

    def known_usage(self, request: ChargeRequest) -> Occupancy | None:
        """Return what the submitter holds; None if usage was never read."""
        if not self._usage.is_known:
            return None
        held = self._usage.held(Scope(request.submission.user))
        return Occupancy(occupied=held.leaf_cells, occupied_high=held.leaf_cells_high)

    def preview(self, request: ChargeRequest) -> GangDecision:
        """Decide without any effect."""
        rules = apply_rules(request, self.known_usage(request))
        recent = self._recent.get(request.submission.gang)
        if recent is not None:
            # A gang of that name that differs may have ended: the ledger will know.
            with suppress(RequestError):
                return _follow_recent(request, recent, AdmissionDecision(rules=rules))
        over = self._find_over(request, rules)
        return decide_now(request, AdmissionDecision(rules=rules, quota=over))

    def admit(self, request: ChargeRequest) -> GangDecision:
        """Decide, and count what is admitted; RequestError if the pod does not match its gang."""
        known = self.known_usage(request)
        rules = apply_rules(request, known)
        recent = self._recent.get(request.submission.gang)
        if recent is not None:
            admission = AdmissionDecision(rules=rules, notes=(LEDGER_UNAVAILABLE,))
            return self._follow(request, recent, admission)
        over = self._find_over(request, rules)
        note = USAGE_UNKNOWN if known is None else LEDGER_UNAVAILABLE
        decision = decide_now(request, AdmissionDecision(rules=rules, quota=over, notes=(note,)))
        if decision.outcome is Outcome.ADMITTED:
            check_fixed_class(request, decision.final_class)
            rises_to = decision.admission.rises_to
            self._assume(request, build_charge(request, decision.final_class, rises_to=rises_to))
        return decision

    def remember(self, request: ChargeRequest, charge: Charge, *, is_queued: bool = False) -> None:
        """Keep a gang's charge for its next members, in case the ledger is unavailable then."""
        if not request.is_alone:
            self._recent[charge.gang] = RecentGang(charge=charge, is_queued=is_queued)

    def _assume(self, request: ChargeRequest, charge: Charge, *, held: int = 0) -> None:
        self._usage.assume(charge, held=held)
        self.remember(request, charge)
        self._on_uncharged()

    def _follow(
        self, request: ChargeRequest, recent: RecentGang, admission: AdmissionDecision
    ) -> GangDecision:
        """Return the earlier decision about the gang, and count what this member adds."""
        decision = _follow_recent(request, recent, admission)
        held, grown = recent.charge, with_member(request, recent.charge)
        if recent.is_queued:
            return decision
        if grown.leaf_count == held.leaf_count:
            self.remember(request, grown)
            return decision
        known = self.known_usage(request)
        judged = growth.judge(request, held, grown.leaf_count, usage=known)
        if judged.is_refused:
            return growth.refuse_by_rules(request, held, judged, notes=admission.notes)
        exceeded = self._find_outgrown(request, held, grown)
        if exceeded:
            return growth.refuse_by_quotas(request, held, decision, exceeded)
        self._assume(request, grown, held=held.leaf_count)
        return decision

    def _find_outgrown(
        self, request: ChargeRequest, held: Charge, grown: Charge
    ) -> tuple[Exceeded, ...]:
        """Return the limits that a grown gang exceeds, compared as if it were new."""
        if not self._usage.is_known:
            return ()
        limits = growth.find_limits(request, held)
        usage = self._usage.usage
        return tuple(find_exceeded(grown, limits, lambda scope: _without_gang(usage(scope), held)))

    def _find_over(self, request: ChargeRequest, rules: RuleDecision) -> OverQuota | None:
        """Compare a gang with its quotas by the usage in memory; None if that is unknown."""
        is_refused = rules.outcome is Outcome.REFUSED
        if request.group is None or is_refused or not self._usage.is_known:
            return None
        charge = build_charge(request, rules.final_class)
        exceeded = tuple(find_exceeded(charge, request.quotas, self._usage.usage))
        if not exceeded:
            return None
        return over_quota(rules, request.group, exceeded, classes=request.policy.classes)


def _follow_recent(
    request: ChargeRequest, recent: RecentGang, admission: AdmissionDecision
) -> GangDecision:
    return follow_charge(request, recent.charge, admission, is_queued=recent.is_queued)


def _without_gang(usage: ScopeUsage, held: Charge) -> ScopeUsage:
    overflow = usage.overflow
    if held.rises_to is not None:
        overflow = replace(overflow, **_less(overflow, held))
    return replace(usage, overflow=overflow, **_less(usage, held))


def _less(sums: HeldSums | ScopeUsage, held: Charge) -> dict[str, Any]:
    """Return the fields of sums without a charge."""
    by_type = dict(sums.by_leaf_type)
    if held.leaf_type is not None:
        by_type[held.leaf_type] = by_type.get(held.leaf_type, 0) - held.leaf_count
    return {
        "leaf_cells": sums.leaf_cells - held.leaf_count,
        "leaf_cells_high": sums.leaf_cells_high - held.leaf_count * held.is_high,
        "gangs": sums.gangs - 1,
        "by_leaf_type": by_type,
    }
