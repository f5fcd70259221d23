"""What the ledger says about a simulated pod: what its submitter holds, and its gang's charge."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from policy.admission import growth
from policy.admission.charge_request import ChargeRequest, build_charge
from policy.admission.preview import EarlierDecision, UsageOf, occupancy_of
from policy.errors import BackendError, RequestError
from policy.quotas.limits import Limit, Scope
from policy.quotas.usage import ScopeUsage
from policy.submission import Occupancy
from state.ledger.ledger import KnownGang, Ledger, check_storable


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Usage and the earlier decision about a gang; `problem` if they cannot be read."""

    of_scopes: Mapping[Scope, ScopeUsage] = field(default_factory=dict)
    occupancy: Occupancy | None = None
    earlier: EarlierDecision | None = None
    problem: str | None = None

    @property
    def usage(self) -> UsageOf | None:
        """What scopes hold; None if that is unknown."""
        return None if self.problem else self._usage_of

    def _usage_of(self, scope: Scope) -> ScopeUsage:
        return self.of_scopes.get(scope) or ScopeUsage(scope=scope)


async def read_standing(ledger: Ledger | None, request: ChargeRequest) -> Standing:
    """Read what decides about a gang beside documents; nothing changes.

    Raises RequestError if the ledger could not store the charge of the gang.
    """
    if ledger is None:
        return Standing(problem=_describe("this extender has no ledger"))
    _check_storable(request)
    own = Scope(request.submission.user)
    try:
        known = await ledger.find(request.submission.gang, scope=own)
        earlier = _earlier_decision(known)
        scopes = dict.fromkeys(limit.scope for limit in _limits(request, earlier))
        found = await asyncio.gather(*map(ledger.usage, scopes))
    except BackendError as exc:
        return Standing(problem=_describe(f"the ledger cannot be read now: {exc}"))
    usage = dict(zip(scopes, found, strict=True))
    return Standing(of_scopes=usage, occupancy=occupancy_of(known.usage), earlier=earlier)


def _check_storable(request: ChargeRequest) -> None:
    try:
        check_storable(build_charge(request, request.submission.requested_class))
    except ValueError as exc:
        raise RequestError.at("", f"the pod cannot be charged: {exc}") from exc


def _describe(problem: str) -> str:
    effect = "usage is unknown, so neither quotas nor rules about usage were applied"
    return f"{problem}; {effect}; the webhook would apply the usage that it knew last"


def _limits(request: ChargeRequest, earlier: EarlierDecision | None) -> tuple[Limit, ...]:
    held = () if earlier is None else growth.find_limits(request, earlier.charge)
    return (*request.quotas, *held)


def _earlier_decision(known: KnownGang) -> EarlierDecision | None:
    if known.live is not None:
        is_running = known.live.expires_at is None
        return EarlierDecision(charge=known.live.charge, is_running=is_running)
    if known.queued is not None:
        return EarlierDecision(charge=known.queued, is_queued=True)
    return None
