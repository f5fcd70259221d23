"""Stops asking a ledger that does not answer, so that no review waits for it twice.

The first review that the ledger fails opens the breaker; from then on reviews are answered without
it. Whether it is back is found out beside them, by a question of ours, so nobody pays for the
attempts of a long outage: the answers of a hung Postgres are as fast as those of a healthy one.

Whatever was let in without the ledger is told to it from here, too: as soon as it is back, or, if
it was never away but somebody had no time to ask it, a moment later.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

from policy.errors import BackendError
from webhook.admission.time_budget import REVIEW_SECONDS

logger = logging.getLogger(__name__)

Probe = Callable[[], Awaitable[object]]


class Breaker:
    """Closed while the ledger answers."""

    def __init__(
        self,
        probe: Probe,
        *,
        catch_up: Probe | None = None,
        pause_seconds: float = 1.0,
        patience_seconds: float = REVIEW_SECONDS,
    ) -> None:
        """`probe` asks the ledger something; patience is what a review has, too.

        `catch_up` tells a ledger that is back what it has missed, before it is used again.
        """
        self._probe = probe
        self._catch_up = catch_up
        self._pause_seconds = pause_seconds
        self._patience_seconds = patience_seconds
        self._is_closed = True
        self._woken = asyncio.Event()

    @property
    def is_closed(self) -> bool:
        """Whether the ledger should be asked."""
        return self._is_closed

    def note_failure(self) -> None:
        """The ledger did not answer."""
        if self.is_closed:
            logger.warning("ledger does not answer: decided without it")
        self._is_closed = False
        self._woken.set()

    def note_debt(self) -> None:
        """Something was let in that the ledger has to be told."""
        self._woken.set()

    async def run(self) -> NoReturn:
        """Look for the ledger while it is away or has missed something, until cancelled."""
        while True:
            await self._woken.wait()
            await asyncio.sleep(self._pause_seconds)
            await self.attempt()

    async def attempt(self) -> None:
        """Ask once, tell what was missed, and close if the ledger answers in time."""
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._probe()
            if self._catch_up is not None:
                await self._catch_up()
        except (BackendError, TimeoutError) as exc:
            self.note_failure()
            logger.info("ledger is still away", extra={"error": str(exc) or "no answer in time"})
        else:
            self._note_answer()

    def _note_answer(self) -> None:
        if not self._is_closed:
            logger.warning("ledger answers again")
        self._is_closed = True
        self._woken.clear()
