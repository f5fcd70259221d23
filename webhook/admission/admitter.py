"""Decide about a gang and charge it: once, whoever asks and however often.

    rules, by the usage in memory
      → against the submitter because of usage? ask the ledger what is held, and decide again
      → one charge, within the quotas and within the range in which the rules decide the same
          charged   done
          held      another member was first: its decision is the gang's; more is charged if this
                    one asks for more than the first
          queued    the same, and the gang waits
          refused   by the range: usage has grown meanwhile, decide again
                    by quotas: refuse, queue, or charge in the lower class

So nobody gets over a limit by being fast, and nobody is refused because of a stale number. If the
ledger does not answer within what is left of the review's budget, or others of the same submitter
take all of it, the last known usage and what this process has let in since decide
(`webhook.admission.memory_decider`), and every answer says so.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from policy.errors import BackendError, ConflictError
from policy.quotas.admission import Admission, over_quota
from policy.quotas.limits import Exceeded, Limit, Measure
from policy.rules.decision import Outcome, RuleDecision
from policy.submission import Usage, UserName
from state.ledger.ledger import Charged, Held, Ledger, Queued, Refused
from webhook.admission.breaker import Breaker
from webhook.admission.grower import Grower
from webhook.admission.ledger_calls import AskedLedger
from webhook.admission.memory_decider import LiveUsage, MemoryDecider
from webhook.admission.pod_group_sizes import check_fixed
from webhook.admission.recent_gangs import RecentGangs
from webhook.admission.time_budget import TooBusyError
from webhook.admission.turns import Turns
from webhook.admission.usage_limits import guards, probes
from webhook.admission.verdict import Request, Verdict, charge_of, decide, decided, follow

_ATTEMPTS: Final = 20
"""Decisions about one gang before giving up: usage that changes faster is an attack or a fault."""


class Admitter:
    """Decides about gangs. Used from one event loop."""

    def __init__(
        self, *, ledger: Ledger, usage: LiveUsage, breaker: Breaker, recent: RecentGangs
    ) -> None:
        self._ledger = AskedLedger(ledger)
        self._breaker = breaker
        self._memory = MemoryDecider(usage=usage, recent=recent, on_debt=breaker.note_debt)
        self._grower = Grower(ledger=self._ledger, memory=self._memory)
        self._turns: Turns[UserName] = Turns()

    def preview(self, request: Request) -> Verdict:
        """Decide without charging, by what is known: for dry runs and templates."""
        return self._memory.preview(request)

    async def admit(self, request: Request) -> Verdict:
        """Decide and charge; RequestError if the gang is another one than the one charged."""
        if not self._breaker.is_closed:
            return self._memory.admit(request)
        try:
            return await self._with_ledger(request)
        except TooBusyError:
            return self._memory.admit(request)
        except BackendError:
            self._breaker.note_failure()
            return self._memory.admit(request)

    async def _with_ledger(self, request: Request) -> Verdict:
        user = request.submission.user
        known = self._memory.known_usage(request)
        answer = await self._ledger.in_time(self._attempt(request, known))
        if isinstance(answer, Verdict):
            return answer
        # Somebody was faster. From now on, those of the same user take turns.
        async with self._turns.turn_of(user):
            for _ in range(_ATTEMPTS):
                if not self._breaker.is_closed:
                    raise BackendError("the ledger went away while others were being decided")
                answer = await self._ledger.in_time(self._attempt(request, None))
                if isinstance(answer, Verdict):
                    return answer
        raise ConflictError(f"usage of {user} changes faster than decisions can be made")

    async def _attempt(self, request: Request, usage: Usage | None) -> Verdict | Usage:
        """Decide, by what the ledger says if usage is not given or speaks against the gang.

        Returns usage if it has changed too much to put the decision into effect.
        """
        decision = decide(request, usage)
        if usage is None or _must_be_sure(request, decision):
            found = await self._look(request, decision)
            if isinstance(found, Verdict):
                return found
            decision = decide(request, found)
        if decision.outcome is Outcome.REFUSED:
            return decided(request, Admission(rules=decision))
        quotas = request.group.limits(request.submission.user) if request.group else ()
        return await self._charge(request, Admission(rules=decision), quotas=quotas)

    async def _look(self, request: Request, decision: RuleDecision) -> Verdict | Usage:
        """Ask the ledger for what the gang was given already, else what its submitter holds."""
        found = await self._probe(request)
        return found if isinstance(found, Usage) else await self._of_gang(request, decision, found)

    async def _probe(self, request: Request) -> Usage | Held | Queued:
        charge = replace(charge_of(request, request.submission.requested_class), is_high=True)
        answer = await self._ledger.charge(charge, limits=probes(request.submission.user))
        if isinstance(answer, Charged):
            # Nothing fits these limits: it was charged when the same review was here before.
            return Held(live=answer.live, usage=answer.usage)
        if not isinstance(answer, Refused):
            return answer
        used = {one.limit.measure: round(one.used) for one in answer.exceeded}
        return Usage(occupied=used[Measure.LEAF_CELLS], occupied_high=used[Measure.LEAF_CELLS_HIGH])

    async def _charge(
        self, request: Request, admission: Admission, *, quotas: Sequence[Limit]
    ) -> Verdict | Usage:
        """Put a decision into effect, where usage is still in the range in which it holds."""
        check_fixed(request.fixed_class, admission.final_class)
        charge = charge_of(request, admission.final_class)
        ranges = guards(charge, admission.rules.valid)
        answer = await self._ledger.charge(charge, limits=(*ranges, *quotas))
        match answer:
            case Charged():
                self._memory.remember(request, charge)
                return decided(request, admission)
            case Held() | Queued():
                return await self._of_gang(request, admission.rules, answer)
            case Refused(exceeded=exceeded):
                if any(one.limit in ranges for one in exceeded):
                    return await self._look(request, admission.rules)
                return await self._over_quota(request, admission.rules, exceeded)

    async def _over_quota(
        self, request: Request, decision: RuleDecision, exceeded: tuple[Exceeded, ...]
    ) -> Verdict | Usage:
        """Refuse a gang, let it wait, or charge it in a class that may run beyond its quotas."""
        assert request.group is not None
        over = over_quota(decision, request.group, exceeded, classes=request.policy.classes)
        admission = Admission(rules=decision, quota=over)
        match over.outcome:
            case Outcome.REFUSED:
                return decided(request, admission)
            case Outcome.QUEUED:
                return await self._queue(request, admission)
            case Outcome.ADMITTED:
                return await self._charge(request, admission, quotas=())

    async def _queue(self, request: Request, admission: Admission) -> Verdict:
        """Let a gang wait, and its members that come to other replicas with it."""
        verdict = decided(request, admission)
        if request.is_alone:
            return verdict
        answer = await self._ledger.queue(charge_of(request, verdict.final_class))
        if isinstance(answer, Held) or answer.charge.decision != request.decision:
            return await self._of_gang(request, admission.rules, answer)
        self._memory.remember(request, answer.charge, is_queued=True)
        return verdict

    async def _of_gang(
        self, request: Request, decision: RuleDecision, answer: Held | Queued
    ) -> Verdict:
        """Take over what was decided about the gang before, and charge what this one adds."""
        admission = Admission(rules=decision)
        if isinstance(answer, Queued):
            self._memory.remember(request, answer.charge, is_queued=True)
            return replace(follow(request, answer.charge, admission), is_queued=True)
        held, is_running = answer.live.charge, answer.live.expires_at is None
        verdict = follow(request, held, admission, is_running=is_running)
        return await self._grower.with_member(request, verdict, held)


def _must_be_sure(request: Request, decision: RuleDecision) -> bool:
    """Tell whether to ask the ledger before the submitter hears something unpleasant."""
    is_against = decision.outcome is Outcome.REFUSED or decision.is_lowered
    is_refused = decision.outcome is Outcome.REFUSED
    return (is_against and decision.needs_usage) or (is_refused and not request.is_alone)
