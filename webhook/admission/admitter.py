"""Decide the class of a gang and charge it, once, however many members and replicas ask.

    apply the rules to the usage in memory
      → usage speaks against the submitter? read current usage from the ledger, apply them again
      → one charge, within the quotas and within the range in which the rules decide the same
          charged   done
          held      another member was first: its decision is the gang's; the charge grows if this
                    member asks for more
          queued    the same, and the gang waits for quota
          refused   by the range: usage has grown meanwhile, decide again
                    by quotas: refuse, queue, or charge in the lower class

So concurrent requests cannot exceed a limit, and no gang is refused because of outdated usage. If
the ledger does not answer within the review's time budget, or other reviews of the same submitter
use all of it, `webhook.admission.memory_decider` decides, and every answer says so.
"""

from typing import Final

from kube.admission.alternatives import check_forms
from policy.admission.basis import Basis, Used, used_before, used_of_exceeded
from policy.admission.charge_request import ChargeRequest, build_charge, impossible_limits
from policy.admission.gang_decision import (
    GangDecision,
    apply_rules,
    check_fixed_class,
    decide_now,
    follow_charge,
)
from policy.admission.preview import occupancy_of
from policy.errors import BackendError, ConflictError
from policy.quotas.admission import AdmissionDecision, over_quota
from policy.quotas.charge import range_limits
from policy.quotas.limits import Exceeded
from policy.rules.decision import Outcome, RuleDecision
from policy.submission import Occupancy, UserName
from state.ledger.ledger import Charged, Held, KnownGang, Ledger, Queued, Refused
from webhook.admission.grower import Grower
from webhook.admission.memory_decider import LiveUsage, MemoryDecider
from webhook.admission.recent_gangs import RecentGangs
from webhook.ledger_access.breaker import Breaker
from webhook.ledger_access.time_budget import TooBusyError
from webhook.ledger_access.timed_ledger import TimedLedger
from webhook.ledger_access.turns import Turns

_ATTEMPTS: Final = 20
"""Decisions about one gang before giving up: usage that changes faster is an attack or a fault."""


class Admitter:
    """Decides about gangs. Used from one event loop."""

    def __init__(
        self, *, ledger: Ledger, usage: LiveUsage, breaker: Breaker, recent: RecentGangs
    ) -> None:
        self._ledger = TimedLedger(ledger)
        self._breaker = breaker
        self._memory = MemoryDecider(usage=usage, recent=recent, on_uncharged=breaker.wake)
        self._grower = Grower(ledger=self._ledger, memory=self._memory)
        self._turns: Turns[UserName] = Turns()

    def preview(self, request: ChargeRequest) -> GangDecision:
        """Decide without charging, by what is in memory: for dry runs and templates."""
        return self._memory.preview(request, is_current=self._breaker.is_closed)

    def check_forms(self, request: ChargeRequest) -> None:
        """Raise RequestError if an alternative would not be admitted like what the pod asks for."""
        if request.alternatives:
            check_forms(request, self._memory.usage_beside(request))

    async def admit(self, request: ChargeRequest) -> GangDecision:
        """Decide and charge; RequestError if the pod does not match its gang."""
        if not self._breaker.is_closed:
            return self._memory.admit(request)
        try:
            return await self._with_ledger(request)
        except TooBusyError:
            return self._memory.admit(request)
        except BackendError:
            self._breaker.note_failure()
            return self._memory.admit(request)

    async def _with_ledger(self, request: ChargeRequest) -> GangDecision:
        user, gang = request.submission.user, request.submission.gang
        known = self._memory.known_usage(request)
        found = await self._ledger.in_time(self._attempt(request, known))
        if isinstance(found, GangDecision):
            return found
        # Another review was faster. From now on, reviews of the same user take turns.
        async with self._turns.turn_of(user):
            for _ in range(_ATTEMPTS):
                if not self._breaker.is_closed:
                    raise BackendError("the ledger became unavailable while this review waited")
                found = await self._ledger.in_time(self._attempt(request, None))
                if isinstance(found, GangDecision):
                    return found
        raise ConflictError(f"usage of {user} changed at every attempt to charge gang {gang}")

    async def _attempt(
        self, request: ChargeRequest, usage: Occupancy | None
    ) -> GangDecision | Occupancy:
        """Decide, by the ledger's usage if none is given or the given one speaks against the gang.

        Returns usage if it has changed too much to put the decision into effect.
        """
        rules = apply_rules(request, usage)
        if usage is None or _needs_current_usage(request, rules):
            found = await self._load_usage(request, rules)
            if isinstance(found, GangDecision):
                return found
            rules = apply_rules(request, found)
        if rules.outcome is Outcome.REFUSED:
            return decide_now(request, AdmissionDecision(rules=rules))
        return await self._charge(request, AdmissionDecision(rules=rules))

    async def _load_usage(
        self, request: ChargeRequest, rules: RuleDecision
    ) -> GangDecision | Occupancy:
        """Return what the submitter holds, or the decision if the gang already has one."""
        user = request.submission.user
        known = await self._ledger.find(request.submission.gang, user=user)
        answer = await self._keep(request, known)
        if answer is not None:
            return await self._follow(request, rules, answer)
        # A charge that has ended since it was found no longer counts.
        return occupancy_of(known.usage) if known.live is None else await self._ledger.usage(user)

    async def _keep(
        self, request: ChargeRequest, known: KnownGang
    ) -> Charged | Held | Queued | None:
        """Return an earlier decision about the gang; an unconfirmed charge does not expire now."""
        live, queued = known.live, known.queued
        if queued is not None and queued.decision != request.decision:
            return Queued(charge=queued)
        if live is None or live.expires_at is None:
            return None if live is None else Held(live=live, usage=(known.usage,))
        charge = build_charge(request, request.submission.requested_class)
        nothing_new = impossible_limits(request.submission.user)
        answer = await self._ledger.charge(charge, limits=nothing_new)
        return None if isinstance(answer, Refused) else answer

    async def _charge(
        self, request: ChargeRequest, admission: AdmissionDecision, *, beyond: Used | None = None
    ) -> GangDecision | Occupancy:
        """Put a decision into effect if usage is still in the range in which it holds.

        `beyond` is what is used of quotas that the gang may exceed; None if it may not.
        """
        quotas = request.quotas if beyond is None else ()
        check_fixed_class(request, admission.final_class)
        charge = build_charge(request, admission.final_class, rises_to=admission.rises_to)
        ranges = range_limits(charge, admission.rules.valid)
        answer = await self._ledger.charge(charge, limits=(*ranges, *quotas))
        match answer:
            case Charged(usage=usage):
                self._memory.remember(request, charge)
                used = used_before(charge, quotas, usage) if quotas else beyond
                return decide_now(request, admission, basis=Basis(used=used))
            case Held() | Queued():
                return await self._follow(request, admission.rules, answer)
            case Refused(exceeded=exceeded):
                if any(one.limit in ranges for one in exceeded):
                    return await self._load_usage(request, admission.rules)
                return await self._over_quota(request, admission.rules, exceeded)

    async def _over_quota(
        self, request: ChargeRequest, rules: RuleDecision, exceeded: tuple[Exceeded, ...]
    ) -> GangDecision | Occupancy:
        """Refuse a gang, queue it, or charge it in a class that may run beyond its quotas."""
        assert request.group is not None
        over = over_quota(rules, request.group, exceeded, classes=request.policy.classes)
        admission = AdmissionDecision(rules=rules, quota=over)
        used = used_of_exceeded(request.quotas, exceeded)
        match over.outcome:
            case Outcome.REFUSED:
                return decide_now(request, admission, basis=Basis(used=used))
            case Outcome.QUEUED:
                return await self._queue(request, admission, used)
            case Outcome.ADMITTED:
                return await self._charge(request, admission, beyond=used)

    async def _queue(
        self, request: ChargeRequest, admission: AdmissionDecision, used: Used
    ) -> GangDecision:
        """Queue a gang in the ledger, so that other replicas queue its members too."""
        decision = decide_now(request, admission, basis=Basis(used=used))
        if request.is_alone:
            return decision
        answer = await self._ledger.queue(build_charge(request, decision.gang_class))
        if isinstance(answer, Held) or answer.charge.decision != request.decision:
            return await self._follow(request, admission.rules, answer)
        self._memory.remember(request, answer.charge, is_queued=True)
        return decision

    async def _follow(
        self, request: ChargeRequest, rules: RuleDecision, answer: Charged | Held | Queued
    ) -> GangDecision:
        """Return the earlier decision about the gang, and charge what this member adds."""
        admission = AdmissionDecision(rules=rules)
        if isinstance(answer, Queued):
            self._memory.remember(request, answer.charge, is_queued=True)
            return follow_charge(request, answer.charge, admission, is_queued=True)
        held, is_running = answer.live.charge, answer.live.expires_at is None
        decision = follow_charge(request, held, admission, is_running=is_running)
        return await self._grower.with_member(request, decision, held)


def _needs_current_usage(request: ChargeRequest, rules: RuleDecision) -> bool:
    """Tell whether to ask the ledger before a decision goes against the submitter."""
    is_refused = rules.outcome is Outcome.REFUSED
    is_against = is_refused or rules.is_lowered
    return (is_against and rules.needs_usage) or (is_refused and not request.is_alone)
