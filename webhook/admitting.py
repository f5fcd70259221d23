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
ledger does not answer in time, the last known usage and what this process has let in since decide
(`_without_ledger`), and every answer says so.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Protocol
from weakref import WeakValueDictionary

from policy.admission import Admission, OverQuota, over_quota
from policy.decision import Outcome, RuleDecision
from policy.errors import BackendError, ConflictError, RequestError
from policy.limits import Exceeded, Limit, Measure, Scope
from policy.submission import ClassName, Usage, UserName
from state.ledger import Answer as LedgerAnswer
from state.ledger import Charge, Charged, Held, Ledger, Queued, Refused
from state.ledger import Usage as HeldUsage
from webhook.breaker import Breaker
from webhook.limits import find_exceeded, guards, probes
from webhook.podgroups import check_fixed
from webhook.recent import Recent, RecentGangs
from webhook.verdict import Request, Verdict, charge_of, decided, follow, leaf_count_with

_ATTEMPTS: Final = 20
"""Decisions about one gang before giving up: usage that changes faster is an attack or a fault."""
_PAUSE_SECONDS: Final = 0.002
"""Between two attempts at a charge that somebody else holds, mostly the leader who confirms it."""
_LEDGER_AWAY: Final = "the ledger does not answer: decided by the usage that was known last"
_USAGE_UNKNOWN: Final = "the ledger does not answer and usage is not known: quotas are not applied"


_Ask = Callable[[Request, Charge], Awaitable[LedgerAnswer | None]]
"""Asks the ledger for more; None if nothing more is needed."""


class LiveUsage(Protocol):
    """Usage in memory: `state.usage_cache` or a twin of it."""

    @property
    def is_known(self) -> bool:
        """Whether usage was ever read."""

    @property
    def assumed(self) -> tuple[Charge, ...]:
        """What was let in and the ledger may not have heard of."""

    def usage(self, scope: Scope) -> HeldUsage:
        """Return what a scope holds and has used, to the best of our knowledge."""

    def held(self, scope: Scope) -> HeldUsage:
        """Return the same, leaf-cell-time aside: that may be old."""

    def assume(self, charge: Charge) -> None:
        """Count a charge that the ledger may not have heard of."""


class Admitter:
    """Decides about gangs. Used from one event loop."""

    def __init__(
        self, *, ledger: Ledger, usage: LiveUsage, breaker: Breaker, recent: RecentGangs
    ) -> None:
        self._ledger = ledger
        self._usage = usage
        self._breaker = breaker
        self._recent = recent
        self._turns: WeakValueDictionary[UserName, asyncio.Lock] = WeakValueDictionary()

    def preview(self, request: Request) -> Verdict:
        """Decide without charging, by what is known: for dry runs and templates."""
        known = self._known_usage(request)
        decision = self._decide(request, known)
        recent = self._recent.find(request.submission.gang)
        if recent is not None:
            # One of its name that asks for something else may have ended: the ledger will tell.
            with suppress(RequestError):
                return _follow_recent(request, recent, Admission(rules=decision))
        over = None if known is None else self._find_over(request, decision)
        return decided(request, Admission(rules=decision, quota=over))

    async def admit(self, request: Request) -> Verdict:
        """Decide and charge; RequestError if the gang is another one than the one charged."""
        if not self._breaker.is_closed:
            return self._without_ledger(request)
        try:
            return await self._with_ledger(request)
        except BackendError:
            self._breaker.note_failure()
            return self._without_ledger(request)

    async def _with_ledger(self, request: Request) -> Verdict:
        user = request.submission.user
        answer = await self._attempt(request, self._known_usage(request))
        if isinstance(answer, Verdict):
            return answer
        # Somebody was faster. From now on, those of the same user take turns.
        async with self._turns.setdefault(user, asyncio.Lock()):
            for _ in range(_ATTEMPTS):
                if not self._breaker.is_closed:
                    raise BackendError("the ledger went away while others were being decided")
                answer = await self._attempt(request, None)
                if isinstance(answer, Verdict):
                    return answer
        raise ConflictError(f"usage of {user} changes faster than decisions can be made")

    async def _attempt(self, request: Request, usage: Usage | None) -> Verdict | Usage:
        """Decide, by what the ledger says if usage is not given or speaks against the gang."""
        decision = self._decide(request, usage)
        if usage is None or _must_be_sure(request, decision):
            fresh = await self._probe(request)
            if not isinstance(fresh, Usage):
                return await self._of_gang(request, decision, fresh)
            decision = self._decide(request, fresh)
        if decision.outcome is Outcome.REFUSED:
            return decided(request, Admission(rules=decision))
        return await self._charge(request, decision)

    async def _charge(self, request: Request, decision: RuleDecision) -> Verdict | Usage:
        """Put a decision into effect; return usage if it has changed too much for that."""
        ranges = guards(request.submission.user, decision.valid)
        quotas = request.group.limits(request.submission.user) if request.group else ()
        check_fixed(request.fixed_class, decision.final_class)
        charge = charge_of(request, decision.final_class)
        answer = await self._ledger.charge(charge, limits=(*ranges, *quotas))
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
        answer = await self._ledger.charge(charge, limits=ranges)
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
        answer = await self._ledger.queue(charge_of(request, verdict.final_class))
        if isinstance(answer, Held) or answer.charge.decision != request.decision:
            return await self._of_gang(request, admission.rules, answer)
        self._remember(request, answer.charge, is_queued=True)
        return verdict

    async def _probe(self, request: Request) -> Usage | Held | Queued:
        """Ask the ledger what the submitter holds, and whether the gang is charged already."""
        charge = replace(charge_of(request, request.submission.requested_class), is_high=True)
        answer = await self._ledger.charge(charge, limits=probes(request.submission.user))
        if isinstance(answer, Held | Queued):
            return answer
        if not isinstance(answer, Refused):
            raise BackendError("the ledger charged what fits no limit")
        used = {one.limit.measure: round(one.used) for one in answer.exceeded}
        return Usage(occupied=used[Measure.LEAF_CELLS], occupied_high=used[Measure.LEAF_CELLS_HIGH])

    def _charged(self, request: Request, admission: Admission) -> Verdict:
        verdict = decided(request, admission)
        self._remember(request, charge_of(request, verdict.final_class))
        return verdict

    async def _of_gang(
        self, request: Request, decision: RuleDecision, answer: Held | Queued
    ) -> Verdict:
        """Take over what was decided about the gang before."""
        admission = Admission(rules=decision)
        if isinstance(answer, Queued):
            self._remember(request, answer.charge, is_queued=True)
            return replace(follow(request, answer.charge, admission), is_queued=True)
        is_running = answer.live.expires_at is None
        verdict = follow(request, answer.live.charge, admission, is_running=is_running)
        covered = await self._until_settled(request, answer.live.charge, self._cover)
        if isinstance(covered, Charge) and request.may_grow and not request.is_group:
            covered = await self._until_settled(request, covered, self._join)
        return verdict if isinstance(covered, Charge) else self._too_much(request, verdict, covered)

    async def _until_settled(
        self, request: Request, held: Charge, ask: _Ask
    ) -> Charge | tuple[Exceeded, ...]:
        """Ask for more for a gang, whoever else does; return what is charged or in the way."""
        for _ in range(_ATTEMPTS):
            self._remember(request, held)
            match await ask(request, held):
                case None:
                    return held
                case Refused(exceeded=exceeded):
                    return exceeded
                case Charged(live=live):
                    self._remember(request, live.charge)
                    return live.charge
                case Held(live=live):
                    held = live.charge
                    await asyncio.sleep(_PAUSE_SECONDS)
                case Queued():
                    break
        raise ConflictError(f"gang {held.gang} changes faster than decisions can be made")

    async def _cover(self, request: Request, held: Charge) -> LedgerAnswer | None:
        """Charge a gang for a member that asks for more than the first, if this one does."""
        leaf_count = leaf_count_with(request, held)
        if leaf_count == held.leaf_count:
            return None
        return await self._ledger.grow(held, leaf_count, limits=_growth_limits(request, held))

    async def _join(self, request: Request, held: Charge) -> LedgerAnswer:
        """Take a place in a gang that may have more members than it needs."""
        own, limits = request.member_leaf_count or 0, _growth_limits(request, held)
        return await self._ledger.join(held, own, limits=limits)

    def _too_much(
        self, request: Request, verdict: Verdict, exceeded: tuple[Exceeded, ...]
    ) -> Verdict:
        """Refuse a member with which its gang would be over quota: it cannot wait alone."""
        assert request.group is not None
        rules = verdict.admission.rules
        asked = next((one.asked for one in exceeded if one.asked > 1), rules.submission.leaf_count)
        over = OverQuota(
            group=request.group.name,
            outcome=Outcome.REFUSED,
            exceeded=exceeded,
            class_before=verdict.final_class,
            class_after=verdict.final_class,
        )
        rules = replace(rules, submission=replace(rules.submission, leaf_count=asked), hits=())
        return decided(request, Admission(rules=rules, quota=over))

    def _remember(self, request: Request, charge: Charge, *, is_queued: bool = False) -> None:
        """The ledger may be away, or not know of it, when the gang's next member comes."""
        if not request.is_alone:
            self._recent.note(charge, is_queued=is_queued)

    def _without_ledger(self, request: Request) -> Verdict:
        """Decide by the last known usage plus what was let in here since; nothing is awaited."""
        recent = self._recent.find(request.submission.gang)
        known = self._known_usage(request)
        decision = self._decide(request, known)
        if recent is not None:
            noted = Admission(rules=decision, notes=(_LEDGER_AWAY,))
            return _follow_recent(request, recent, noted)
        over = None if known is None else self._find_over(request, decision)
        note = _USAGE_UNKNOWN if known is None else _LEDGER_AWAY
        verdict = decided(request, Admission(rules=decision, quota=over, notes=(note,)))
        if verdict.outcome is Outcome.ADMITTED:
            check_fixed(request.fixed_class, verdict.final_class)
            charge = charge_of(request, verdict.final_class)
            self._usage.assume(charge)
            self._remember(request, charge)
        return verdict

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

    def _known_usage(self, request: Request) -> Usage | None:
        if not self._usage.is_known:
            return None
        held = self._usage.held(Scope(request.submission.user))
        return Usage(occupied=held.leaf_cells, occupied_high=held.leaf_cells_high)

    def _decide(self, request: Request, usage: Usage | None) -> RuleDecision:
        policy, fixed = request.policy, request.fixed_class
        decision = policy.rules.decide(request.submission, usage=usage, classes=policy.classes)
        if fixed is None or not policy.classes.is_lower(fixed, decision.final_class):
            return decision
        # Its PodGroup was lowered when there was less room, or by its author.
        submission = replace(request.submission, requested_class=fixed)
        return policy.rules.decide(submission, usage=usage, classes=policy.classes)


def _follow_recent(request: Request, recent: Recent, admission: Admission) -> Verdict:
    return replace(follow(request, recent.charge, admission), is_queued=recent.is_queued)


def _growth_limits(request: Request, held: Charge) -> tuple[Limit, ...]:
    """Return what a growing gang must stay within; nothing where its class may run beyond."""
    group, classes = request.group, request.policy.classes
    if group is None:
        return ()
    if group.lowers and not classes.is_lower(ClassName(group.over), held.class_name):
        return ()
    return group.limits(request.submission.user)


def _must_be_sure(request: Request, decision: RuleDecision) -> bool:
    """Tell whether to ask the ledger before the submitter hears something unpleasant."""
    is_against = decision.outcome is Outcome.REFUSED or decision.is_lowered
    is_refused = decision.outcome is Outcome.REFUSED
    return (is_against and decision.needs_usage) or (is_refused and not request.is_alone)
