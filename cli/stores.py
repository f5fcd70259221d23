"""Opens the database, decision log and ledger of a service, and runs their background tasks."""

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

from service.runner import RunningService
from state.database.database import Database, open_database
from state.database.deferred_database import open_deferred
from state.database.maintenance import LogMaintenance
from state.database.migrator import Stage, migrate
from state.database.retention import RetentionSettings
from state.ledger.postgres import PostgresLedger
from state.ledger.usage_cache import CacheSettings, UsageCache
from state.ledger.usage_metrics import UsageMetrics
from state.log.log import DecisionLog
from state.log.postgres import PostgresDecisions
from state.log.spool.mirror import open_mirror
from state.log.spool.spool import Spool

# A read of usage costs as much as a review. Decisions do not depend on it, since the ledger checks
# every charge, so one read for many changes is enough.
_USAGE = CacheSettings(gather_seconds=0.05)


@asynccontextmanager
async def open_own_database(url: str, *, service: str) -> AsyncIterator[Database]:
    """Open a database that only this process uses, and apply all migrations."""
    async with open_database(url, application_name=f"cellgate {service}") as database:
        await migrate(database.pool)
        yield database


def open_shared_database(url: str, *, service: str) -> AbstractAsyncContextManager[Database]:
    """Open a database for one of several replicas; it may become available later.

    Migrations that need all older replicas to have ended are not applied.
    """
    prepare = partial(migrate, until=Stage.PRE)
    return open_deferred(url, application_name=f"cellgate {service}", prepare=prepare)


@asynccontextmanager
async def open_log(
    database: Database, *, spool: Path | str | None, is_mirrored: bool = False
) -> AsyncIterator[DecisionLog]:
    """Open the decision log. Without a spool, pending records are lost when the process is killed.

    A mirror also preserves the records of the last 0.1 s, for some microseconds for each record.
    """
    store = PostgresDecisions(database.pool)
    if spool is None:
        yield DecisionLog(store)
        return
    disk = await asyncio.to_thread(Spool, Path(spool))
    mirror = await asyncio.to_thread(open_mirror, Path(spool)) if is_mirrored else None
    try:
        yield DecisionLog(store, spool=disk, mirror=mirror)
    finally:
        if mirror is not None:
            mirror.close()
        disk.close()


@asynccontextmanager
async def open_ledger(
    database: Database, *, listen_url: str | None = None
) -> AsyncIterator[tuple[PostgresLedger, UsageCache]]:
    """Open the ledger, and the usage in memory that `supervise_usage` keeps current."""
    usage = UsageCache(listen_url or database.url, _USAGE)
    if database.is_open:
        await usage.check()
    ledger = PostgresLedger(database.pool, on_usage=usage.observe)
    try:
        yield ledger, usage
    finally:
        await ledger.aclose()


def supervise_state(
    service: RunningService, database: Database, log: DecisionLog, *, retention: RetentionSettings
) -> None:
    """Start the tasks that keep the database connected, delete old data and write decisions."""
    service.supervisor.start("database", database.keep_alive())
    service.supervisor.start("log maintenance", LogMaintenance(database.pool, retention).run())
    service.supervisor.start("decision log", log.run())


def supervise_usage(service: RunningService, usage: UsageCache) -> None:
    """Start the task that keeps usage current, and add its metrics."""
    UsageMetrics(service.registry, usage)
    service.supervisor.start("usage", usage.run())


def read_retention(options: Namespace) -> RetentionSettings:
    """Read how long data is kept."""
    return RetentionSettings(
        log_days=options.keep_log_days,
        history_days=options.keep_history_days,
        totals_days=options.keep_totals_days,
    )
