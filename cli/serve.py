"""`cellgate extender` and `cellgate webhook`: one production service each."""

import asyncio
import secrets
import socket
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from extender.app import run_extender
from extender.feeds.cluster_file import load_cluster_file
from extender.settings import LEADERSHIP, ExtenderSettings
from kube.api.client import connect
from kube.api.leadership import LeadershipSettings
from service.health import Health
from service.process import Exit, Stop
from service.runner import RunningService
from state.database.database import Database, open_database
from state.database.deferred_database import open_deferred
from state.database.maintenance import LogMaintenance, RetentionSettings
from state.database.migrator import Stage, migrate
from state.ledger.postgres import PostgresLedger
from state.ledger.usage_cache import CacheSettings, UsageCache
from state.ledger.usage_metrics import UsageMetrics
from state.log.log import DecisionLog
from state.log.postgres import PostgresDecisions
from state.log.spool.mirror import open_mirror
from state.log.spool.spool import Spool
from webhook.app import WebhookSettings, run_webhook

_LOOK_SECONDS = 0.2
# A standby takes over within five seconds, of which the Lease has four.
_LEADER_LOOK_SECONDS = 0.2
# Decisions are exact whatever is in memory, so a look at usage for many changes is enough: each one
# costs as much as a review.
_USAGE = CacheSettings(gather_seconds=0.05)


async def serve_extender(options: Namespace, stop: Stop) -> Exit:
    """Run the extender until asked to stop."""
    settings = ExtenderSettings(
        address=options.listen,
        namespace=options.namespace,
        cluster_file=Path(options.cluster) if options.cluster else None,
        allows_insecure_http=options.insecure_http,
        wants_tls=options.tls,
        certificates=Path(options.certs) if options.certs else None,
        leadership=LeadershipSettings(
            name=LEADERSHIP,
            namespace=options.namespace,
            identity=_identity(options.pod_name),
            look_seconds=_LEADER_LOOK_SECONDS,
        ),
        pod_name=options.pod_name,
    )
    settings.check()
    if settings.cluster_file:
        # What is wrong with it is told at once, not when the database is up.
        await asyncio.to_thread(load_cluster_file, settings.cluster_file)
    async with (
        _open_state_late(options.database_url, service="extender") as database,
        open_log(database, spool=options.spool_dir) as log,
        open_ledger(database, listen_url=options.database_listen_url) as (ledger, usage),
        connect(options.kubeconfig) as client,
        run_extender(settings, client=client, log=log, ledger=ledger) as extender,
    ):
        supervise_state(extender, database, log, retention=read_retention(options))
        supervise_usage(extender, usage)
        return await until_ended(stop, extender.health)


async def serve_webhook(options: Namespace, stop: Stop) -> Exit:
    """Run the webhook until asked to stop."""
    settings = WebhookSettings(
        address=options.listen,
        namespace=options.namespace,
        certificates=Path(options.certs) if options.certs else None,
        secret=options.certs_secret,
        ca_overlap_seconds=options.ca_overlap_seconds,
        identity=_identity(options.pod_name),
        client_ca=Path(options.client_ca) if options.client_ca else None,
        client_names=options.client_names or (),
        linger_seconds=options.linger_seconds,
        admins=options.policy_admins,
        binders=options.binders,
        gates_all=not options.gate_queued_only,
    )
    settings.check()
    async with (
        _open_state_late(options.database_url, service="webhook") as database,
        open_log(database, spool=options.spool_dir, is_mirrored=True) as log,
        open_ledger(database, listen_url=options.database_listen_url) as (ledger, usage),
        connect(options.kubeconfig) as client,
        run_webhook(settings, client=client, log=log, ledger=ledger, usage=usage) as webhook,
    ):
        supervise_state(webhook, database, log, retention=read_retention(options))
        supervise_usage(webhook, usage)
        return await until_ended(stop, webhook.health)


async def until_ended(stop: Stop, health: Health) -> Exit:
    """Wait until we are asked to end, or a part is broken: whoever runs us starts us again."""
    while health.is_alive:
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _LOOK_SECONDS)
            return Exit.OK
    return Exit.DIED


def _identity(pod_name: str | None) -> str:
    """Unique to this process: one that is started again must not take its old self for itself."""
    return f"{pod_name or socket.gethostname()}_{secrets.token_hex(4)}"


@asynccontextmanager
async def open_state(database_url: str, *, service: str) -> AsyncIterator[Database]:
    """Open the database and bring its schema up to date, where nobody else uses it."""
    async with open_database(database_url, application_name=f"cellgate {service}") as database:
        await migrate(database.pool)
        yield database


def _open_state_late(database_url: str, *, service: str) -> AbstractAsyncContextManager[Database]:
    """Do the same as one of several replicas, for which the database need not be there yet.

    It stops before what only works when no older replica runs.
    """
    return open_deferred(
        database_url,
        application_name=f"cellgate {service}",
        prepare=partial(migrate, until=Stage.PRE),
    )


@asynccontextmanager
async def open_log(
    database: Database, *, spool: Path | str | None, is_mirrored: bool = False
) -> AsyncIterator[DecisionLog]:
    """Have a log over a database; without a spool it forgets what a killed process had pending.

    Mirrored, it does not forget the last tenth of a second either, for some microseconds a record.
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
    """Have the ledger of a database, and usage in memory, which `supervise_usage` keeps fresh."""
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
    """Let a service write its decisions and keep its database alive and in order."""
    service.supervisor.start("database", database.keep_alive())
    service.supervisor.start("log maintenance", LogMaintenance(database.pool, retention).run())
    service.supervisor.start("decision log", log.run())


def supervise_usage(service: RunningService, usage: UsageCache) -> None:
    """Let a service follow what everybody holds, and tell how old its knowledge is."""
    UsageMetrics(service.registry, usage)
    service.supervisor.start("usage", usage.run())


def read_retention(options: Namespace) -> RetentionSettings:
    """Say how long things are kept."""
    return RetentionSettings(
        log_days=options.keep_log_days,
        history_days=options.keep_history_days,
        totals_days=options.keep_totals_days,
    )
