"""The ledger within a review's time budget, and whether a missing answer means an outage."""

import asyncio
import math
from collections.abc import Awaitable, Sequence
from typing import Final, TypeVar

from policy.errors import BackendError
from policy.quotas.charge import Charge, CpuAndMemory
from policy.quotas.limits import Limit, Scope
from policy.submission import GangKey, Occupancy, UserName
from state.ledger.ledger import ChargeAnswer, Held, KnownGang, Ledger, Queued
from webhook.ledger_access.time_budget import TooBusyError, within_budget

_RECENT_SECONDS: Final = 0.1
"""A ledger that has answered any review within this time is available, however busy."""

_Result = TypeVar("_Result")


class TimedLedger:
    """What reviews ask of the ledger; knows when it last answered any of them."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._answered_at = -math.inf

    async def charge(self, charge: Charge, *, limits: Sequence[Limit]) -> ChargeAnswer:
        """Charge a gang within limits."""
        return await self._note(self._ledger.charge(charge, limits=limits))

    async def queue(self, charge: Charge) -> Held | Queued:
        """Let a gang wait uncharged."""
        return await self._note(self._ledger.queue(charge))

    async def resize(
        self, held: Charge, leaf_count: int, *, limits: Sequence[Limit]
    ) -> ChargeAnswer:
        """Charge a gang for `leaf_count` leaf cells in total, within limits."""
        return await self._note(self._ledger.resize(held, leaf_count, limits=limits))

    async def join(self, held: Charge, leaf_count: int, *, limits: Sequence[Limit]) -> ChargeAnswer:
        """Give a member a place in a charged gang, or `leaf_count` leaf cells more."""
        return await self._note(self._ledger.join(held, leaf_count, limits=limits))

    async def add(
        self, held: Charge, more: CpuAndMemory, *, limits: Sequence[Limit]
    ) -> ChargeAnswer:
        """Charge a gang for more CPU and memory, within limits."""
        return await self._note(self._ledger.add(held, more, limits=limits))

    async def find(self, gang: GangKey, *, user: UserName) -> KnownGang:
        """Return the decision about a gang, and what a submitter holds."""
        return await self._note(self._ledger.find(gang, scope=Scope(user)))

    async def usage(self, user: UserName) -> Occupancy:
        """Return what a submitter holds."""
        usage = await self._note(self._ledger.usage(Scope(user)))
        return Occupancy(occupied=usage.leaf_cells, occupied_high=usage.leaf_cells_high)

    async def in_time(self, calls: Awaitable[_Result]) -> _Result:
        """Await calls of this ledger within the review's time budget.

        Raises BackendError if the time is over and no review has had an answer meanwhile, and
        TooBusyError if the ledger is only slow.
        """
        began = asyncio.get_running_loop().time()
        try:
            async with within_budget():
                return await calls
        except TimeoutError as exc:
            now = asyncio.get_running_loop().time()
            is_away = now - max(began, self._answered_at) >= _RECENT_SECONDS
            kind = BackendError if is_away else TooBusyError
            raise kind("the ledger did not answer within the time budget of a review") from exc

    async def _note(self, call: Awaitable[_Result]) -> _Result:
        result = await call
        self._answered_at = asyncio.get_running_loop().time()
        return result
