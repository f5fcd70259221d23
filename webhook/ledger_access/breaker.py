"""A circuit breaker in front of the ledger, so that an outage delays one review at most.

The first review that the ledger fails opens the breaker. While it is open, reviews are answered
without the ledger, and a background task probes it; so reviews are as fast during an outage as
without one.

Before the breaker closes, what was admitted without the ledger is charged (`catch_up`). If one
review only ran out of time, the breaker stays closed, and its charge follows a moment later.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

from policy.errors import BackendError
from webhook.ledger_access.time_budget import REVIEW_SECONDS

logger = logging.getLogger(__name__)

_Call = Callable[[], Awaitable[object]]


class Breaker:
    """Closed while the ledger answers."""

    def __init__(
        self,
        probe: _Call,
        *,
        catch_up: _Call | None = None,
        pause_seconds: float = 1.0,
        patience_seconds: float = REVIEW_SECONDS,
    ) -> None:
        """`probe` calls the ledger, within the time of a review.

        `catch_up` charges what was admitted without the ledger, before reviews use it again.
        """
        self._probe = probe
        self._catch_up = catch_up
        self._pause_seconds = pause_seconds
        self._patience_seconds = patience_seconds
        self.is_closed = True
        """Whether reviews should call the ledger."""
        self._woken = asyncio.Event()

    def note_failure(self) -> None:
        """Open: the ledger did not answer."""
        if self.is_closed:
            logger.warning("quota database unavailable, last known usage applied")
        self.is_closed = False
        self.wake()

    def wake(self) -> None:
        """Probe and catch up soon: a gang was admitted that is not charged yet."""
        self._woken.set()

    async def run(self) -> NoReturn:
        """Probe while the breaker is open or charges are missing, until cancelled."""
        while True:
            await self._woken.wait()
            await asyncio.sleep(self._pause_seconds)
            await self.attempt()

    async def attempt(self) -> None:
        """Probe once, catch up, and close if the ledger answers in time."""
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._probe()
            if self._catch_up is not None:
                await self._catch_up()
        except (BackendError, TimeoutError) as exc:
            self.note_failure()
            extra = {"error": str(exc) or "no answer in time"}
            logger.info("quota database still unavailable", extra=extra)
            return
        if not self.is_closed:
            logger.warning("quota database available again")
        self.is_closed = True
        self._woken.clear()
