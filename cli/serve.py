"""`cellgate extender` and `cellgate webhook`: one service each, for production."""

import asyncio
import secrets
import socket
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from cli.stores import (
    open_ledger,
    open_log,
    open_shared_database,
    read_retention,
    supervise_state,
    supervise_usage,
)
from extender.app import run_extender
from extender.feeds.cluster_file import load_cluster_file
from extender.settings import LEADERSHIP, ExtenderSettings
from kube.api.client import connect
from kube.api.leadership import LeadershipSettings
from service.exit_codes import Exit
from service.health import Health
from service.process import Stop
from state.history.runs import PostgresHistory
from state.nodes.postgres import PostgresSeenNodes
from state.outlook.postgres import PostgresOutlook
from state.past.postgres import PostgresPast
from state.promises.postgres import PostgresPromises
from webhook.app import WebhookSettings, WebhookState, run_webhook

_POLL_SECONDS = 0.2
# A standby must take over within 5 s, and the Lease expires after 4 s.
_LEADER_LOOK_SECONDS = 0.2


async def serve_extender(options: Namespace, stop: Stop) -> Exit:
    """Run the extender until it is told to stop."""
    settings = ExtenderSettings(
        address=options.listen,
        namespace=options.namespace,
        cluster_file=Path(options.cluster) if options.cluster else None,
        hold_seconds=options.hold_seconds,
        reclaims_gently=options.gentle_reclaim,
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
        provisioning_class=options.provisioning_class,
    )
    settings.check()
    if settings.cluster_file:
        # Report problems of the file at once, not after the database is open.
        await asyncio.to_thread(load_cluster_file, settings.cluster_file)
    async with (
        open_shared_database(options.database_url, service="extender") as database,
        open_log(database, spool=options.spool_dir) as log,
        open_ledger(database, listen_url=options.database_listen_url) as (ledger, usage),
        connect(options.kubeconfig) as client,
        run_extender(
            settings,
            client=client,
            log=log,
            ledger=ledger,
            seen_nodes=PostgresSeenNodes(database.pool),
            history=PostgresHistory(database.pool, keep_days=options.keep_history_days),
            promises=PostgresPromises(database.pool),
            outlook=PostgresOutlook(database.pool),
        ) as extender,
    ):
        supervise_state(extender, database, log, retention=read_retention(options))
        supervise_usage(extender, usage)
        return await wait_until_stopped(stop, [extender.health])


async def serve_webhook(options: Namespace, stop: Stop) -> Exit:
    """Run the webhook until it is told to stop."""
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
        reclaims_gently=options.gentle_reclaim,
        gates_all=not options.gate_queued_only,
    )
    settings.check()
    async with (
        open_shared_database(options.database_url, service="webhook") as database,
        open_log(database, spool=options.spool_dir, is_mirrored=True) as log,
        open_ledger(database, listen_url=options.database_listen_url) as (ledger, usage),
        connect(options.kubeconfig) as client,
        run_webhook(
            settings,
            client=client,
            state=WebhookState(
                log=log,
                ledger=ledger,
                usage=usage,
                seen_nodes=PostgresSeenNodes(database.pool),
                outlook=PostgresOutlook(database.pool),
                promises=PostgresPromises(database.pool),
                past=PostgresPast(database.pool),
            ),
        ) as webhook,
    ):
        supervise_state(webhook, database, log, retention=read_retention(options))
        supervise_usage(webhook, usage)
        return await wait_until_stopped(stop, [webhook.health])


async def wait_until_stopped(stop: Stop, parts: Sequence[Health]) -> Exit:
    """Wait for the request to stop, or until a part of the process has failed."""
    while all(health.is_alive for health in parts):
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _POLL_SECONDS)
            return Exit.OK
    return Exit.DIED


def _identity(pod_name: str | None) -> str:
    """Return a name for leader election that a restarted process does not have again."""
    return f"{pod_name or socket.gethostname()}_{secrets.token_hex(4)}"
