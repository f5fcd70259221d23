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
(`webhook.by_memory`), and every answer says so.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final, Protocol, TypeVar
from weakref import WeakValueDictionary

from policy.admission import Admission, over_quota
from policy.decision import Outcome, RuleDecision
from policy.errors import BackendError, ConflictError
from policy.limits import Exceeded, Limit, Measure, Scope
from policy.submission import GangKey, Usage, UserName
from state.ledger import Answer as LedgerAnswer
from state.ledger import Charge, Charged, Held, Ledger, Queued, Refused
from webhook.breaker import Breaker
from webhook.budget import within_budget
from webhook.by_memory import LiveUsage, MemoryDecider
from webhook.growing import Growth, growth_limits, judge_growth, refuse_growth, too_much
from webhook.limits import guards, probes
from webhook.podgroups import check_fixed
from webhook.recent import RecentGangs
from webhook.verdict import (
    Request,
    Verdict,
    charge_of,
    decide,
    decided,
    follow,
    leaf_count_with,
)

_ATTEMPTS: Final = 20
"""Decisions about one gang before giving up: usage that changes faster is an attack or a fault."""
_PAUSE_SECONDS: Final = 0.002
"""Between two attempts at a charge that somebody else holds, mostly the leader who confirms it."""
_FAIR_SECONDS: Final = 0.1
"""A ledger that has answered somebody within that time is there, however much it has to do."""


_Answer = TypeVar("_Answer")
_Ask = Callable[[Request, Charge], Awaitable[LedgerAnswer | Verdict | None]]
"""Asks the ledger for more; None if nothing more is needed, a refusal if the rules forbid it."""


class _Grow(Protocol):
    """One way to let a gang grow."""

    def __call__(self, *, limits: Sequence[Limit]) -> Awaitable[LedgerAnswer]: ...


class _TooBusyError(BackendError):
    """Time ran out, and not because of the ledger: it need not be left alone."""


class Admitter:
    """Decides about gangs. Used from one event loop."""

    def __init__(
        self, *, ledger: Ledger, usage: LiveUsage, breaker: Breaker, recent: RecentGangs
    ) -> None:
        self._ledger = ledger
        self._breaker = breaker
        self._memory = MemoryDecider(usage=usage, recent=recent, on_debt=breaker.note_debt)
        self._heard_at = -math.inf
        self._turns: WeakValueDictionary[UserName | GangKey, asyncio.Lock] = WeakValueDictionary()

    def preview(self, request: Request) -> Verdict:
        """Decide without charging, by what is known: for dry runs and templates."""
        return self._memory.preview(request)

    async def admit(self, request: Request) -> Verdict:
        """Decide and charge; RequestError if the gang is another one than the one charged."""
        if not self._breaker.is_closed:
            return self._memory.admit(request)
        try:
            return await self._with_ledger(request)
        except _TooBusyError:
            return self._memory.admit(request)
        except BackendError:
            self._breaker.note_failure()
            return self._memory.admit(request)

    async def _with_ledger(self, request: Request) -> Verdict:
        user = request.submission.user
        answer = await self._attempt_in_time(request, self._memory.known_usage(request))
        if isinstance(answer, Verdict):
            return answer
        # Somebody was faster. From now on, those of the same user take turns.
        async with self._turn_of(user):
            for _ in range(_ATTEMPTS):
                if not self._breaker.is_closed:
                    raise BackendError("the ledger went away while others were being decided")
                answer = await self._attempt_in_time(request, None)
                if isinstance(answer, Verdict):
                    return answer
        raise ConflictError(f"usage of {user} changes faster than decisions can be made")

    @asynccontextmanager
    async def _turn_of(self, whose: UserName | GangKey) -> AsyncIterator[None]:
        """Wait for a user's turn; and then, for that of a gang, never the other way round."""
        turn = self._turns.setdefault(whose, asyncio.Lock())
        try:
            async with within_budget():
                await turn.acquire()
        except TimeoutError as exc:
            raise _TooBusyError(f"others of {whose} are being decided") from exc
        try:
            yield
        finally:
            turn.release()

    async def _attempt_in_time(self, request: Request, usage: Usage | None) -> Verdict | Usage:
        """Attempt it within the budget: a ledger from which nobody has heard meanwhile is away."""
        began = asyncio.get_running_loop().time()
        try:
            async with within_budget():
                return await self._attempt(request, usage)
        except TimeoutError as exc:
            now = asyncio.get_running_loop().time()
            is_away = now - max(began, self._heard_at) >= _FAIR_SECONDS
            kind = BackendError if is_away else _TooBusyError
            raise kind("the ledger did not answer within the budget of a review") from exc

    async def _hear(self, answer: Awaitable[_Answer]) -> _Answer:
        answered = await answer
        self._heard_at = asyncio.get_running_loop().time()
        return answered

    async def _attempt(self, request: Request, usage: Usage | None) -> Verdict | Usage:
        """Decide, by what the ledger says if usage is not given or speaks against the gang."""
        decision = decide(request, usage)
        if usage is None or _must_be_sure(request, decision):
            fresh = await self._probe(request)
            if not isinstance(fresh, Usage):
                return await self._of_gang(request, decision, fresh)
            decision = decide(request, fresh)
        if decision.outcome is Outcome.REFUSED:
            return decided(request, Admission(rules=decision))
        return await self._charge(request, decision)

    async def _charge(self, request: Request, decision: RuleDecision) -> Verdict | Usage:
        """Put a decision into effect; return usage if it has changed too much for that."""
        quotas = request.group.limits(request.submission.user) if request.group else ()
        check_fixed(request.fixed_class, decision.final_class)
        charge = charge_of(request, decision.final_class)
        ranges = guards(charge, decision.valid)
        answer = await self._hear(self._ledger.charge(charge, limits=(*ranges, *quotas)))
        match answer:
            case Charged():
                return self._charged(request, Admission(rules=decision))
            case Held() | Queued():
                return await self._of_gang(request, decision, answer)
            case Refused(exceeded=exceeded):
                return await self._over_limits(request, decision, exceeded, ranges=ranges)

    async def _over_limits(
        self,
        request: Request,
        decision: RuleDecision,
        exceeded: Sequence[Exceeded],
        *,
        ranges: Sequence[Limit],
    ) -> Verdict | Usage:
        if any(one.limit in ranges for one in exceeded):
            fresh = await self._probe(request)
            if isinstance(fresh, Usage):
                return fresh
            return await self._of_gang(request, decision, fresh)
        assert request.group is not None
        classes = request.policy.classes
        over = over_quota(decision, request.group, tuple(exceeded), classes=classes)
        admission = Admission(rules=decision, quota=over)
        if over.outcome is Outcome.QUEUED:
            return await self._queue(request, admission)
        if over.outcome is not Outcome.ADMITTED:
            return decided(request, admission)
        check_fixed(request.fixed_class, over.class_after)
        charge = charge_of(request, over.class_after)
        ranges = guards(charge, decision.valid)
        answer = await self._hear(self._ledger.charge(charge, limits=ranges))
        match answer:
            case Charged():
                return self._charged(request, admission)
            case Held() | Queued():
                return await self._of_gang(request, decision, answer)
            case Refused():
                return await self._over_limits(request, decision, answer.exceeded, ranges=ranges)

    async def _queue(self, request: Request, admission: Admission) -> Verdict:
        """Let a gang wait, and its members that come to other replicas with it."""
        verdict = decided(request, admission)
        if request.is_alone:
            return verdict
        answer = await self._hear(self._ledger.queue(charge_of(request, verdict.final_class)))
        if isinstance(answer, Held) or answer.charge.decision != request.decision:
            return await self._of_gang(request, admission.rules, answer)
        self._memory.remember(request, answer.charge, is_queued=True)
        return verdict

    async def _probe(self, request: Request) -> Usage | Held | Queued:
        """Ask the ledger what the submitter holds, and whether the gang is charged already."""
        charge = replace(charge_of(request, request.submission.requested_class), is_high=True)
        answer = await self._hear(
            self._ledger.charge(charge, limits=probes(request.submission.user))
        )
        if isinstance(answer, Charged):
            # Nothing fits these limits: it was charged when the same review was here before.
            return Held(live=answer.live, usage=answer.usage)
        if not isinstance(answer, Refused):
            return answer
        used = {one.limit.measure: round(one.used) for one in answer.exceeded}
        return Usage(occupied=used[Measure.LEAF_CELLS], occupied_high=used[Measure.LEAF_CELLS_HIGH])

    def _charged(self, request: Request, admission: Admission) -> Verdict:
        verdict = decided(request, admission)
        self._memory.remember(request, charge_of(request, verdict.final_class))
        return verdict

    async def _of_gang(
        self, request: Request, decision: RuleDecision, answer: Held | Queued
    ) -> Verdict:
        """Take over what was decided about the gang before."""
        admission = Admission(rules=decision)
        if isinstance(answer, Queued):
            self._memory.remember(request, answer.charge, is_queued=True)
            return replace(follow(request, answer.charge, admission), is_queued=True)
        is_running = answer.live.expires_at is None
        held = answer.live.charge
        verdict = follow(request, held, admission, is_running=is_running)
        covered = await self._until_settled(request, verdict, held, self._cover)
        if isinstance(covered, Charge) and request.joins:
            covered = await self._until_settled(request, verdict, covered, self._join)
        return verdict if isinstance(covered, Charge) else covered

    async def _until_settled(
        self, request: Request, verdict: Verdict, held: Charge, ask: _Ask
    ) -> Charge | Verdict:
        """Ask for more for a gang, whoever else does; return what is charged, or a refusal."""
        for _ in range(_ATTEMPTS):
            self._memory.remember(request, held)
            match await ask(request, held):
                case None:
                    return held
                case Verdict() as refusal:
                    return refusal
                case Refused(exceeded=exceeded):
                    return too_much(request, held, verdict, exceeded)
                case Charged(live=live):
                    self._memory.remember(request, live.charge)
                    return live.charge
                case Held(live=live):
                    held = live.charge
                    await asyncio.sleep(_PAUSE_SECONDS)
                case Queued():
                    break
        raise ConflictError(f"gang {held.gang} changes faster than decisions can be made")

    async def _cover(self, request: Request, held: Charge) -> LedgerAnswer | Verdict | None:
        """Charge a gang for a member that asks for more than the first, if this one does."""
        leaf_count = leaf_count_with(request, held)
        if leaf_count == held.leaf_count:
            return None
        grow = partial(self._ledger.resize, held, leaf_count)
        return await self._grow(request, held, leaf_count, grow)

    async def _join(self, request: Request, held: Charge) -> LedgerAnswer | Verdict:
        """Take a place in a gang that may have more members than it needs."""
        own = request.member_leaf_count or 0
        grow = partial(self._ledger.join, held, own)
        return await self._grow(request, held, held.leaf_count + own, grow)

    async def _grow(
        self, request: Request, held: Charge, leaf_count: int, grow: _Grow
    ) -> LedgerAnswer | Verdict:
        """Let a gang grow within its quotas, and as far as the rules let it keep its class.

        Where they do not, by usage that may be old, the ledger is asked nevertheless: there may be
        a place left that needs no growth.
        """
        usage = self._memory.known_usage(request) or await self._ask_usage(request)
        growth = judge_growth(request, held, leaf_count, usage=usage)
        answer = await self._grow_within(growth, growth_limits(request, held), grow)
        if answer is not None:
            return answer
        # By an old number, or somebody was faster. From now on, members take turns.
        async with self._turn_of(held.gang):
            for _ in range(_ATTEMPTS):
                usage = await self._ask_usage(request)
                growth = judge_growth(request, held, leaf_count, usage=usage)
                answer = await self._grow_within(growth, growth_limits(request, held), grow)
                if answer is not None:
                    return answer
                if growth.is_refused:
                    return refuse_growth(request, held, growth)
        raise ConflictError(f"usage of {held.user} changes faster than decisions can be made")

    async def _grow_within(
        self, growth: Growth, quotas: Sequence[Limit], grow: _Grow
    ) -> LedgerAnswer | None:
        """Ask the ledger; None if what the rules say stands in the way."""
        answer = await self._hear(grow(limits=(*growth.ranges, *quotas)))
        exceeded = answer.exceeded if isinstance(answer, Refused) else ()
        return None if any(one.limit in growth.ranges for one in exceeded) else answer

    async def _ask_usage(self, request: Request) -> Usage:
        usage = await self._hear(self._ledger.usage(Scope(request.submission.user)))
        return Usage(occupied=usage.leaf_cells, occupied_high=usage.leaf_cells_high)


def _must_be_sure(request: Request, decision: RuleDecision) -> bool:
    """Tell whether to ask the ledger before the submitter hears something unpleasant."""
    is_against = decision.outcome is Outcome.REFUSED or decision.is_lowered
    is_refused = decision.outcome is Outcome.REFUSED
    return (is_against and decision.needs_usage) or (is_refused and not request.is_alone)
