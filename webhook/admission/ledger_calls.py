"""Ask the ledger within the budget of a review, and tell why an answer did not come in time."""

import asyncio
import math
from collections.abc import Awaitable, Sequence
from typing import Final, TypeVar

from policy.errors import BackendError
from policy.quotas.limits import Limit, Scope
from policy.submission import Usage, UserName
from state.ledger.ledger import Answer, Charge, Held, Ledger, Queued
from webhook.admission.time_budget import TooBusyError, within_budget

_FAIR_SECONDS: Final = 0.1
"""A ledger that has answered somebody within that time is there, however much it has to do."""

_Answer = TypeVar("_Answer")


class AskedLedger:
    """What reviews ask of the ledger. Knows when it answered last, whichever review it was."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._heard_at = -math.inf

    async def charge(self, charge: Charge, *, limits: Sequence[Limit]) -> Answer:
        """Charge a gang within limits."""
        return await self._hear(self._ledger.charge(charge, limits=limits))

    async def queue(self, charge: Charge) -> Held | Queued:
        """Let a gang wait uncharged."""
        return await self._hear(self._ledger.queue(charge))

    async def resize(self, held: Charge, leaf_count: int, *, limits: Sequence[Limit]) -> Answer:
        """Let a charged gang have so many leaf cells, within limits."""
        return await self._hear(self._ledger.resize(held, leaf_count, limits=limits))

    async def join(self, held: Charge, leaf_count: int, *, limits: Sequence[Limit]) -> Answer:
        """Give a member a place in a charged gang, or so many leaf cells more, within limits."""
        return await self._hear(self._ledger.join(held, leaf_count, limits=limits))

    async def usage(self, user: UserName) -> Usage:
        """Return what a submitter holds."""
        usage = await self._hear(self._ledger.usage(Scope(user)))
        return Usage(occupied=usage.leaf_cells, occupied_high=usage.leaf_cells_high)

    async def in_time(self, asking: Awaitable[_Answer]) -> _Answer:
        """Await what asks here, within the budget.

        When that is over, a ledger from which nobody has heard meanwhile is away: BackendError.
        Any other has too much to do: TooBusyError.
        """
        began = asyncio.get_running_loop().time()
        try:
            async with within_budget():
                return await asking
        except TimeoutError as exc:
            now = asyncio.get_running_loop().time()
            is_away = now - max(began, self._heard_at) >= _FAIR_SECONDS
            kind = BackendError if is_away else TooBusyError
            raise kind("the ledger did not answer within the budget of a review") from exc

    async def _hear(self, answer: Awaitable[_Answer]) -> _Answer:
        answered = await answer
        self._heard_at = asyncio.get_running_loop().time()
        return answered
