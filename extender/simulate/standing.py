"""What the ledger says about a simulated pod: what its submitter holds, and its gang's charge."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from policy.admission import growth
from policy.admission.charge_request import ChargeRequest, build_charge, impossible_limits
from policy.admission.preview import EarlierDecision, UsageOf, occupancy_of
from policy.errors import BackendError, RequestError
from policy.quotas.limits import Limit, Scope
from policy.quotas.usage import ScopeUsage
from policy.submission import Occupancy
from state.ledger.ledger import ChargeAnswer, Charged, Held, Ledger, Queued


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
    try:
        earlier = await _find_earlier(ledger, request)
        own = Scope(request.submission.user)
        scopes = dict.fromkeys([own, *(limit.scope for limit in _limits(request, earlier))])
        found = await asyncio.gather(*map(ledger.usage, scopes))
    except BackendError as exc:
        return Standing(problem=_describe(f"the ledger cannot be read now: {exc}"))
    except ValueError as exc:
        raise RequestError.at("", f"the pod cannot be charged: {exc}") from exc
    usage = dict(zip(scopes, found, strict=True))
    return Standing(of_scopes=usage, occupancy=occupancy_of(usage[own]), earlier=earlier)


def _describe(problem: str) -> str:
    effect = "usage is unknown, so neither quotas nor rules about usage were applied"
    return f"{problem}; {effect}; the webhook would apply the usage that it knew last"


def _limits(request: ChargeRequest, earlier: EarlierDecision | None) -> tuple[Limit, ...]:
    held = () if earlier is None else growth.find_limits(request, earlier.charge)
    return (*request.quotas, *held)


async def _find_earlier(ledger: Ledger, request: ChargeRequest) -> EarlierDecision | None:
    """Return the decision about the gang, if it has one: the answer to an impossible charge."""
    charge = replace(build_charge(request, request.submission.requested_class), is_high=True)
    limits = impossible_limits(request.submission.user)
    answer: ChargeAnswer = await ledger.charge(charge, limits=limits)
    match answer:
        case Held(live=live) | Charged(live=live):
            return EarlierDecision(charge=live.charge, is_running=live.expires_at is None)
        case Queued(charge=queued):
            return EarlierDecision(charge=queued, is_queued=True)
    return None
