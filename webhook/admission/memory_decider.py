"""Decide by what is in memory: previews, and admissions while the ledger is unavailable.

Memory holds the usage that was read last and what this replica has admitted since. So a submitter
cannot exceed the limits at one replica, however many requests come at once; what other replicas
have admitted meanwhile is unknown (`docs/decisions/0011-admission.md`).
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from policy.admission.charge_request import ChargeRequest
from policy.admission.gang_decision import GangDecision
from policy.admission.preview import EarlierDecision, UsageOf, decide, occupancy_of
from policy.errors import RequestError
from policy.quotas.charge import Charge
from policy.quotas.limits import Scope
from policy.quotas.usage import ScopeUsage
from policy.rules.decision import Outcome
from policy.submission import Occupancy
from state.ledger.assumed_charges import AssumedCharges
from webhook.admission.recent_gangs import RecentGangs

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

    def assume(self, charge: Charge, *, held: Charge | None = None) -> None:
        """Count a charge that may not be in the ledger, except what is `held` there."""


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
        return occupancy_of(self._usage.held(Scope(request.submission.user)))

    def usage_beside(self, request: ChargeRequest) -> Occupancy | None:
        """Return what the submitter holds without this gang, as far as it is known here."""
        known, recent = self.known_usage(request), self._recent.get(request.submission.gang)
        if known is None or recent is None or recent.is_queued:
            return known
        own = recent.charge.leaf_count
        high = own if recent.charge.is_high else 0
        return Occupancy(
            occupied=max(0, known.occupied - own), occupied_high=max(0, known.occupied_high - high)
        )

    def preview(self, request: ChargeRequest, *, is_current: bool) -> GangDecision:
        """Decide without any effect; the decision says if usage is not current.

        Raises RequestError if the pod does not match its PodGroup.
        """
        known, usage = self.known_usage(request), self._usage_of
        notes = () if is_current else (USAGE_UNKNOWN if known is None else LEDGER_UNAVAILABLE,)
        recent = self._recent.get(request.submission.gang)
        if recent is not None:
            # A gang of that name that differs may have ended: the ledger will know.
            with suppress(RequestError):
                made = decide(request, usage=usage, occupancy=known, earlier=recent, notes=notes)
                return made.decision
        return decide(request, usage=usage, occupancy=known, notes=notes).decision

    def admit(self, request: ChargeRequest) -> GangDecision:
        """Decide, and count what is admitted; RequestError if the pod does not match its gang."""
        known = self.known_usage(request)
        recent = self._recent.get(request.submission.gang)
        is_unknown = known is None and recent is None
        made = decide(
            request,
            usage=self._usage_of,
            occupancy=known,
            earlier=recent,
            notes=(USAGE_UNKNOWN if is_unknown else LEDGER_UNAVAILABLE,),
        )
        if made.charge is not None and made.decision.outcome is Outcome.ADMITTED:
            self._count(request, made.charge, before=recent)
        return made.decision

    @property
    def _usage_of(self) -> UsageOf | None:
        return self._usage.usage if self._usage.is_known else None

    def remember(self, request: ChargeRequest, charge: Charge, *, is_queued: bool = False) -> None:
        """Keep a gang's charge for its next members, in case the ledger is unavailable then."""
        if not request.is_alone:
            self._recent[charge.gang] = EarlierDecision(charge=charge, is_queued=is_queued)

    def _count(
        self, request: ChargeRequest, charge: Charge, *, before: EarlierDecision | None
    ) -> None:
        """Count what a member adds to the charge of its gang."""
        held = None if before is None else before.charge
        self.remember(request, charge)
        is_larger = held is None or charge.leaf_count != held.leaf_count
        if is_larger or (held and charge.cpu_and_memory != held.cpu_and_memory):
            self._usage.assume(charge, held=held)
            self._on_uncharged()
