"""Retention: creates the coming daily partitions of the log, and deletes data that is too old.

Every replica does it; a lock in Postgres serializes them. Writers do not depend on it: rows of a
day without a partition go to the default partition, and move when the partition is created. A drop
that would wait for readers fails quickly and is retried. Data is deleted only when it is too old by
both clocks, that of this process and that of the database, in case one of them is wrong.
"""

import asyncio
import logging
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NoReturn

import asyncpg

from policy.errors import BackendError
from state.database.database import backend_errors
from state.database.queries import sql
from state.database.retention import RetentionSettings

logger = logging.getLogger(__name__)

_AT_ONCE = 5000


class LogMaintenance:
    """Creates and drops daily partitions, and deletes old rows."""

    def __init__(self, pool: asyncpg.Pool, settings: RetentionSettings | None = None) -> None:
        self._pool = pool
        self._settings = settings or RetentionSettings()

    async def run(self) -> NoReturn:
        """Repeat `maintain` until cancelled."""
        while True:
            pause = self._settings.every_seconds
            try:
                await self.maintain(datetime.now(UTC))
            except BackendError as error:
                pause = self._settings.retry_seconds
                logger.warning(
                    "retention failed, will retry",
                    extra={"pause_seconds": pause, "error": str(error)},
                )
            await asyncio.sleep(pause)

    async def maintain(self, now: datetime) -> None:
        """Create the coming partitions, and delete data that is too old."""
        today = now.astimezone(UTC).date()
        await self._make_days(today)
        await self._drop_days(today)
        for table, keep_days in self._kept():
            await self._delete_old(table, today, keep_days)

    def _kept(self) -> Iterator[tuple[str, int]]:
        settings = self._settings
        yield "decisions_default", settings.log_days
        # As long as any row may refer to them.
        yield "documents", max(settings.log_days, settings.history_days)
        yield "gang_history", settings.history_days
        yield "past_charges", settings.history_days
        yield "gang_days", settings.totals_days
        yield "leaf_cell_days", settings.totals_days

    async def _make_days(self, today: date) -> None:
        # Yesterday's too: a record may be written some time after its creation.
        first, count = today - timedelta(days=1), self._settings.ahead_days + 2
        with backend_errors("creating partitions of the log"):
            made = await self._pool.fetchval(sql("ensure_decision_days"), first, count)
        if made:
            logger.info("log partitions created", extra={"count": made})

    async def _drop_days(self, today: date) -> None:
        """Drop one partition at a time, so that writers do not wait long."""
        keep_days = self._settings.log_days
        with backend_errors("dropping partitions of the log"):
            while name := await self._pool.fetchval(sql("drop_decision_day"), today, keep_days):
                logger.info("log partition dropped", extra={"table": name})

    async def _delete_old(self, table: str, today: date, keep_days: int) -> None:
        """Delete rows in batches, so that no transaction is long."""
        query = sql("forget_past")
        with backend_errors(f"deleting old rows of {table}"):
            while count := await self._pool.fetchval(query, table, today, keep_days, _AT_ONCE):
                logger.info("old rows deleted", extra={"table": table, "count": count})
