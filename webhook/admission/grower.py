"""Charge a gang for a member that asks for more than is charged, within rules and quotas.

    judge by the usage in memory, and ask the ledger for more in the range in which that holds
      → the ledger stands in the way by the range? from now on, members of the gang take turns:
        ask what is held, judge again, ask for more again
          charged   done
          held      it is not charged like that any more: look at it as it is now
          refused   by the rules or by quotas, with words that say which (`growth`)

Who waits for a gang's turn may have its submitter's already; never the other way round.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol

from policy.errors import ConflictError
from policy.quotas.limits import Limit
from policy.submission import GangKey
from state.ledger.ledger import Answer, Charge, Charged, Held, Queued, Refused
from webhook.admission.growth import Growth, growth_limits, judge_growth, refuse_growth, too_much
from webhook.admission.ledger_calls import AskedLedger
from webhook.admission.memory_decider import MemoryDecider
from webhook.admission.turns import Turns
from webhook.admission.verdict import Request, Verdict, leaf_count_with

_ATTEMPTS: Final = 20
"""As many as a new gang has: usage that changes faster is an attack or a fault."""
_PAUSE_SECONDS: Final = 0.002
"""Between two attempts at a charge that somebody else holds, mostly the leader who confirms it."""

_AskForMore = Callable[[Request, Charge], Awaitable[Answer | Verdict | None]]
"""None if nothing more is needed, a refusal if the rules forbid it."""


class _Grow(Protocol):
    """One way to let a gang grow."""

    def __call__(self, *, limits: Sequence[Limit]) -> Awaitable[Answer]: ...


class Grower:
    """Lets charged gangs grow. Used from one event loop."""

    def __init__(self, *, ledger: AskedLedger, memory: MemoryDecider) -> None:
        self._ledger = ledger
        self._memory = memory
        self._turns: Turns[GangKey] = Turns()

    async def with_member(self, request: Request, verdict: Verdict, held: Charge) -> Verdict:
        """Charge a gang for one more member, if need be; return its verdict, or a refusal."""
        covered = await self._until_settled(request, verdict, held, self._cover)
        if isinstance(covered, Charge) and request.joins:
            covered = await self._until_settled(request, verdict, covered, self._join)
        return verdict if isinstance(covered, Charge) else covered

    async def _until_settled(
        self, request: Request, verdict: Verdict, held: Charge, ask: _AskForMore
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

    async def _cover(self, request: Request, held: Charge) -> Answer | Verdict | None:
        """Charge a gang for a member that asks for more than the first, if this one does."""
        leaf_count = leaf_count_with(request, held)
        if leaf_count == held.leaf_count:
            return None
        grow = partial(self._ledger.resize, held, leaf_count)
        return await self._grow(request, held, leaf_count, grow)

    async def _join(self, request: Request, held: Charge) -> Answer | Verdict:
        """Take a place in a gang that may have more members than it needs."""
        own = request.member_leaf_count or 0
        grow = partial(self._ledger.join, held, own)
        return await self._grow(request, held, held.leaf_count + own, grow)

    async def _grow(
        self, request: Request, held: Charge, leaf_count: int, grow: _Grow
    ) -> Answer | Verdict:
        """Let a gang grow within its quotas, and as far as the rules let it keep its class.

        Where they do not, by usage that may be old, the ledger is asked nevertheless: there may be
        a place left that needs no growth.
        """
        user, quotas = request.submission.user, growth_limits(request, held)
        usage = self._memory.known_usage(request) or await self._ledger.usage(user)
        growth = judge_growth(request, held, leaf_count, usage=usage)
        answer = await _grow_within(growth, quotas, grow)
        if answer is not None:
            return answer
        # By an old number, or somebody was faster. From now on, members take turns.
        async with self._turns.turn_of(held.gang):
            for _ in range(_ATTEMPTS):
                usage = await self._ledger.usage(user)
                growth = judge_growth(request, held, leaf_count, usage=usage)
                answer = await _grow_within(growth, quotas, grow)
                if answer is not None:
                    return answer
                if growth.is_refused:
                    return refuse_growth(request, held, growth)
        raise ConflictError(f"usage of {held.user} changes faster than decisions can be made")


async def _grow_within(growth: Growth, quotas: Sequence[Limit], grow: _Grow) -> Answer | None:
    """Ask the ledger; None if what the rules say stands in the way."""
    answer = await grow(limits=(*growth.ranges, *quotas))
    exceeded = answer.exceeded if isinstance(answer, Refused) else ()
    return None if any(one.limit in growth.ranges for one in exceeded) else answer
