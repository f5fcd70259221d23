"""Keeps the tables that grow: makes the log's days to come, forgets what is too old.

Any replica may do it, and all do: they take turns in Postgres. Nobody waits for it: rows of a day
that was not made in time go to the default partition and move over when it is made. A drop that
finds readers in its way gives up within moments and is tried again. What is too old must be so by
two clocks, ours and the database's, so that one of them may be wrong.
"""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NoReturn

import asyncpg

from policy.errors import BackendError
from state.database.database import backend_errors
from state.database.queries import sql

logger = logging.getLogger(__name__)

_AT_ONCE = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """How long things are kept: so many whole days, and the day they were made on."""

    log_days: int = 90
    """Decisions and observations: what can be explained and replayed. Most of the disk."""

    history_days: int = 400
    """Runs of gangs, past charges, documents: what can be asked about one job, or one moment."""

    totals_days: int = 1100
    """Sums by day: hours of users, groups, VCs and classes. Hardly any disk."""

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
        """Make the days to come, and forget what is too old."""
        today = now.astimezone(UTC).date()
        await self._make_days(today)
        await self._drop_days(today)
        for table, keep_days in self._kept():
            await self._forget(table, today, keep_days)

    def _kept(self) -> Iterator[tuple[str, int]]:
        settings = self._settings
        yield "decisions_default", settings.log_days
        # As long as any row may speak of them.
        yield "documents", max(settings.log_days, settings.history_days)
        yield "gang_history", settings.history_days
        yield "past_charges", settings.history_days
        yield "gang_days", settings.totals_days
        yield "leaf_cell_days", settings.totals_days

    async def _make_days(self, today: date) -> None:
        # Yesterday's too: a record may be written some time after it was made.
        first, count = today - timedelta(days=1), self._settings.ahead_days + 2
        with backend_errors("making tables for the log"):
            made = await self._pool.fetchval(sql("ensure_decision_days"), first, count)
        if made:
            logger.info("log tables made", extra={"count": made})

    async def _drop_days(self, today: date) -> None:
        """Drop one day after another, each by itself, so that writers get in between."""
        keep_days = self._settings.log_days
        with backend_errors("dropping tables of the log"):
            while name := await self._pool.fetchval(sql("drop_decision_day"), today, keep_days):
                logger.info("log table dropped", extra={"table": name})

    async def _forget(self, table: str, today: date, keep_days: int) -> None:
        """Delete some rows at a time, so that no transaction is long."""
        query = sql("forget_past")
        with backend_errors(f"forgetting rows of {table}"):
            while count := await self._pool.fetchval(query, table, today, keep_days, _AT_ONCE):
                logger.info("old rows forgotten", extra={"table": table, "count": count})
