"""Keeps the decision log's tables: makes the days to come, drops those that are too old.

Any replica may do it, and all do: they take turns in Postgres. Nobody waits for it: rows of a day
that was not made in time go to the default partition and move over when it is made. A drop that
finds readers in its way gives up within moments and is tried again.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NoReturn

import asyncpg

from policy.errors import BackendError
from state.database import backend_errors
from state.queries import sql

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """How long the log is kept."""

    keep_days: int = 90
    """Rows live so many whole days, and the day they were made on."""

    ahead_days: int = 7
    """Tables are made so many days ahead: how long maintenance may fail without notice."""

    every_seconds: float = 3600.0
    """How often days are made and dropped."""

    retry_seconds: float = 60.0
    """How soon it is tried again after a failure."""


class LogMaintenance:
    """Makes and drops the days of the decision log."""

    def __init__(self, pool: asyncpg.Pool, settings: RetentionSettings | None = None) -> None:
        self._pool = pool
        self._settings = settings or RetentionSettings()

    async def run(self) -> NoReturn:
        """Maintain until cancelled."""
        while True:
            pause = self._settings.every_seconds
            try:
                await self.maintain(datetime.now(UTC))
            except BackendError as error:
                pause = self._settings.retry_seconds
                logger.warning(
                    "log not maintained, will retry",
                    extra={"pause_seconds": pause, "error": str(error)},
                )
            await asyncio.sleep(pause)

    async def maintain(self, now: datetime) -> None:
        """Make the days to come and drop those that are too old."""
        today = now.astimezone(UTC).date()
        await self._make_days(today)
        await self._drop_days(today - timedelta(days=self._settings.keep_days))

    async def _make_days(self, today: date) -> None:
        # Yesterday's too: a record may be written some time after it was made.
        first, count = today - timedelta(days=1), self._settings.ahead_days + 2
        with backend_errors("making tables for the log"):
            made = await self._pool.fetchval(sql("ensure_decision_days"), first, count)
        if made:
            logger.info("log tables made", extra={"count": made})

    async def _drop_days(self, before: date) -> None:
        """Drop one day after another, each by itself, so that writers get in between."""
        with backend_errors("dropping tables of the log"):
            while name := await self._pool.fetchval(sql("drop_decision_day"), before):
                logger.info("log table dropped", extra={"table": name})
