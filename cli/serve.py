"""`cellgate extender` and `cellgate webhook`: one production service each."""

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from extender.app import ExtenderSettings, run_extender
from kube.client import connect
from service.process import Exit, Stop
from service.running import RunningService
from state.database import Database, open_database
from state.decisions import PostgresDecisions
from state.ledger_postgres import PostgresLedger
from state.log import DecisionLog
from state.maintenance import LogMaintenance
from state.migrate import Stage, migrate
from state.spool import Spool
from state.usage_cache import CacheSettings, UsageCache
from webhook.app import WebhookSettings, run_webhook

# Decisions are exact whatever is in memory, so a look at usage for many changes is enough: each one
# costs as much as a review.
_USAGE = CacheSettings(gather_seconds=0.05)


async def serve_extender(options: Namespace, stop: Stop) -> Exit:
    """Run the extender until asked to stop."""
    settings = ExtenderSettings(address=options.listen, allows_insecure_http=options.insecure_http)
    settings.check()
    async with (
        open_state(options.database_url, service="extender", until=Stage.PRE) as database,
        open_log(database, spool=options.spool_dir) as log,
        connect(options.kubeconfig) as client,
        run_extender(settings, client=client, log=log) as extender,
    ):
        supervise_state(extender, database, log)
        await stop.wait()
    return Exit.OK


async def serve_webhook(options: Namespace, stop: Stop) -> Exit:
    """Run the webhook until asked to stop."""
    settings = WebhookSettings(
        address=options.listen,
        namespace=options.namespace,
        certificates=Path(options.certs),
        admins=options.policy_admins,
        gates_all=options.gate_all,
    )
    async with (
        open_state(options.database_url, service="webhook", until=Stage.PRE) as database,
        open_log(database, spool=options.spool_dir) as log,
        open_ledger(database, listen_url=options.database_listen_url) as (ledger, usage),
        connect(options.kubeconfig) as client,
        run_webhook(settings, client=client, log=log, ledger=ledger, usage=usage) as webhook,
    ):
        supervise_state(webhook, database, log)
        webhook.supervisor.start("usage", usage.run())
        await stop.wait()
    return Exit.OK


@asynccontextmanager
async def open_state(database_url: str, *, service: str, until: Stage) -> AsyncIterator[Database]:
    """Open the database and bring its schema up to date.

    A replica stops before what only works when no older one runs (`until=Stage.PRE`).
    """
    async with open_database(database_url, application_name=f"cellgate {service}") as database:
        await migrate(database.pool, until=until)
        yield database


@asynccontextmanager
async def open_log(database: Database, *, spool: Path | str | None) -> AsyncIterator[DecisionLog]:
    """Have a log over a database; without a spool it forgets what a killed process had pending."""
    store = PostgresDecisions(database.pool)
    if spool is None:
        yield DecisionLog(store)
        return
    disk = await asyncio.to_thread(Spool, Path(spool))
    try:
        yield DecisionLog(store, spool=disk)
    finally:
        disk.close()


@asynccontextmanager
async def open_ledger(
    database: Database, *, listen_url: str | None = None
) -> AsyncIterator[tuple[PostgresLedger, UsageCache]]:
    """Have the ledger of a database, and usage in memory; the caller runs the latter."""
    usage = UsageCache(listen_url or database.url, _USAGE)
    ledger = PostgresLedger(database.pool, on_usage=usage.observe)
    try:
        yield ledger, usage
    finally:
        await ledger.aclose()


def supervise_state(service: RunningService, database: Database, log: DecisionLog) -> None:
    """Let a service write its decisions and keep its database alive and in order."""
    service.supervisor.start("database", database.keep_alive())
    service.supervisor.start("log maintenance", LogMaintenance(database.pool).run())
    service.supervisor.start("decision log", log.run())
