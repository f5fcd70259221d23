"""The admissions of the last day, read from the decision log in the background.

The newest are read first, a stretch at a time, so that reading a busy day disturbs no database.
What is new is read a stretch at a time, too: after an outage it may be a whole night. Rows that a
service stores late, because Postgres was away, are missing if they are too late.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NoReturn

from policy.errors import BackendError
from service.clock import Clock
from state.past.past import PastStore, StoredAdmission

logger = logging.getLogger(__name__)

KEPT: Final = timedelta(days=1)
_STRETCH: Final = timedelta(minutes=15)
_LATE: Final = timedelta(seconds=10)
"""How long after its decision a row may be stored."""
_PAUSE_SECONDS: Final = 0.5
_EVERY_SECONDS: Final = 20.0
_READ_SECONDS: Final = 10.0
_MOST: Final = 40_000
"""Rows kept: about 1 kB each."""


class RecentAdmissions:
    """The rows of the last day, as far as they have been read."""

    def __init__(self, store: PastStore, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._rows: deque[StoredAdmission] = deque()
        self.since = self.until = clock.now() - _LATE
        """From when until when all rows are known."""

    @property
    def rows(self) -> Sequence[StoredAdmission]:
        """The rows, oldest first."""
        return tuple(self._rows)

    async def run(self) -> NoReturn:
        """Read what is missing, until cancelled."""
        while True:
            is_complete = await self.read_on()
            await asyncio.sleep(_EVERY_SECONDS if is_complete else _PAUSE_SECONDS)

    async def read_on(self) -> bool:
        """Read a stretch of new rows and an older one; tell whether a whole day is known."""
        try:
            async with asyncio.timeout(_READ_SECONDS):
                is_current = await self._read_new()
                await self._read_old()
        except (BackendError, TimeoutError) as exc:
            logger.info("admissions not read, will retry", extra={"error": str(exc)})
            return True
        return is_current and self._is_complete

    @property
    def _is_complete(self) -> bool:
        return self.since <= self._oldest or len(self._rows) >= _MOST

    @property
    def _oldest(self) -> datetime:
        return self._clock.now() - KEPT

    async def _read_new(self) -> bool:
        """Read a stretch of new rows; tell whether it was the last one."""
        newest = self._clock.now() - _LATE
        begin = max(self.until, self._oldest)
        until = min(newest, begin + _STRETCH)
        if until <= begin:
            return True
        self._rows += await self._store.admissions(since=begin, until=until)
        self.until = until
        self._drop_oldest()
        self.since = max(self.since, self._oldest)
        return until == newest

    async def _read_old(self) -> None:
        if self._is_complete:
            return
        since = max(self.since - _STRETCH, self._oldest)
        self._rows.extendleft(reversed(await self._store.admissions(since=since, until=self.since)))
        self.since = since
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Drop rows that are too old or too many."""
        while self._rows and (len(self._rows) > _MOST or self._rows[0].at < self._oldest):
            self.since = max(self.since, self._rows.popleft().at)
