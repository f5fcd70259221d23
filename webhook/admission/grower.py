"""Charge a gang for a member that asks for more than its charge covers, within rules and quotas.

    apply the rules to the usage in memory, and ask the ledger to grow the charge in their range
      → refused by the range? from now on, members of the gang take turns: read the usage, apply
        the rules again, ask the ledger again
          charged   done
          held      the charge has changed meanwhile: start over from the current one
          refused   by the rules or by quotas (`policy.admission.growth`)

CPU and memory beyond those of the first member are added before that, within quotas alone: rules do
not know them.

A review that waits for a gang's turn may already have its submitter's turn, never the reverse.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol

from policy.admission import growth
from policy.admission.charge_request import (
    ChargeRequest,
    leaf_count_with,
    requested_beyond,
    reserved_for,
)
from policy.admission.gang_decision import GangDecision
from policy.admission.growth import Growth
from policy.errors import ConflictError
from policy.quotas.charge import Charge
from policy.quotas.limits import Limit
from policy.submission import GangKey
from state.ledger.ledger import ChargeAnswer, Charged, Held, Queued, Refused
from webhook.admission.memory_decider import MemoryDecider
from webhook.ledger_access.timed_ledger import TimedLedger
from webhook.ledger_access.turns import Turns

_ATTEMPTS: Final = 20
"""As many as a new gang has: usage that changes faster is an attack or a fault."""
_PAUSE_SECONDS: Final = 0.002
"""Between two attempts at a charge that has changed, mostly because the leader confirmed it."""

_AskForMore = Callable[[ChargeRequest, Charge], Awaitable[ChargeAnswer | GangDecision | None]]
"""None if the charge covers the member, a decision if the rules refuse it."""


class _Grow(Protocol):
    """One way to grow a charge."""

    def __call__(self, *, limits: Sequence[Limit]) -> Awaitable[ChargeAnswer]: ...


class Grower:
    """Grows the charges of gangs. Used from one event loop."""

    def __init__(self, *, ledger: TimedLedger, memory: MemoryDecider) -> None:
        self._ledger = ledger
        self._memory = memory
        self._turns: Turns[GangKey] = Turns()

    async def with_member(
        self, request: ChargeRequest, decision: GangDecision, held: Charge
    ) -> GangDecision:
        """Charge a gang for one more member if needed; return its decision, or a refusal."""
        covered = await self._until_settled(request, decision, held, self._add)
        if isinstance(covered, Charge):
            covered = await self._until_settled(request, decision, covered, self._cover)
        if isinstance(covered, Charge) and request.joins:
            covered = await self._until_settled(request, decision, covered, self._join)
        return decision if isinstance(covered, Charge) else covered

    async def _until_settled(
        self, request: ChargeRequest, decision: GangDecision, held: Charge, ask: _AskForMore
    ) -> Charge | GangDecision:
        """Grow a charge despite concurrent changes; return the new charge, or a refusal."""
        for _ in range(_ATTEMPTS):
            self._memory.remember(request, held)
            match await ask(request, held):
                case None:
                    return held
                case GangDecision() as refusal:
                    return refusal
                case Refused(exceeded=exceeded):
                    return growth.refuse_by_quotas(request, held, decision, exceeded)
                case Charged(live=live):
                    self._memory.remember(request, live.charge)
                    return live.charge
                case Held(live=live):
                    held = live.charge
                    await asyncio.sleep(_PAUSE_SECONDS)
                case Queued():
                    break
        raise ConflictError(f"the charge of gang {held.gang} changed at every attempt to grow it")

    async def _add(self, request: ChargeRequest, held: Charge) -> ChargeAnswer | None:
        """Charge a gang for CPU and memory that a member requests beyond the first one.

        Where no quota limits them, the leader counts them later.
        """
        more, limits = requested_beyond(request, held), growth.find_amount_limits(request, held)
        if more.is_none or not limits:
            return None
        return await self._ledger.add(held, more, limits=limits)

    async def _cover(
        self, request: ChargeRequest, held: Charge
    ) -> ChargeAnswer | GangDecision | None:
        """Charge a gang for a member that asks for more than the first one did."""
        reserved = reserved_for(request, held)
        if reserved:
            grow = partial(self._ledger.join, held, reserved)
            return await self._grow(request, held, held.leaf_count + reserved, grow)
        leaf_count = leaf_count_with(request, held)
        if leaf_count == held.leaf_count:
            return None
        grow = partial(self._ledger.resize, held, leaf_count)
        return await self._grow(request, held, leaf_count, grow)

    async def _join(self, request: ChargeRequest, held: Charge) -> ChargeAnswer | GangDecision:
        """Take a place in a gang that may have more members than its minimum."""
        own = request.member_leaf_count or 0
        grow = partial(self._ledger.join, held, own)
        return await self._grow(request, held, held.leaf_count + own, grow)

    async def _grow(
        self, request: ChargeRequest, held: Charge, leaf_count: int, grow: _Grow
    ) -> ChargeAnswer | GangDecision:
        """Grow a charge within its quotas, as far as the rules let the gang keep its class.

        If the rules refuse by the usage in memory, the ledger is asked nevertheless: usage may be
        outdated, and a place that needs no growth may be left.
        """
        user, quotas = request.submission.user, growth.find_limits(request, held)
        usage = self._memory.known_usage(request) or await self._ledger.usage(user)
        judged = growth.judge(request, held, leaf_count, usage=usage)
        answer = await _grow_within(judged, quotas, grow)
        if answer is not None:
            return answer
        # Usage was outdated, or another review was faster. From now on, members take turns.
        async with self._turns.turn_of(held.gang):
            for _ in range(_ATTEMPTS):
                usage = await self._ledger.usage(user)
                judged = growth.judge(request, held, leaf_count, usage=usage)
                answer = await _grow_within(judged, quotas, grow)
                if answer is not None:
                    return answer
                if judged.is_refused:
                    return growth.refuse_by_rules(request, held, judged)
        raise ConflictError(f"usage of {held.user} changed at every attempt to grow {held.gang}")


async def _grow_within(judged: Growth, quotas: Sequence[Limit], grow: _Grow) -> ChargeAnswer | None:
    """Ask the ledger; None if it refuses because of the range of the rules."""
    answer = await grow(limits=(*judged.ranges, *quotas))
    exceeded = answer.exceeded if isinstance(answer, Refused) else ()
    return None if any(one.limit in judged.ranges for one in exceeded) else answer
