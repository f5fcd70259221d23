"""`cellgate run`: all services on one machine, with a simulated cluster or a real one."""

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from cli import banner
from cli.serve import wait_until_stopped
from cli.simulated_cluster import Simulation, run_simulation
from cli.stores import (
    open_ledger,
    open_log,
    open_own_database,
    read_retention,
    supervise_state,
    supervise_usage,
)
from extender.app import run_extender
from extender.settings import ExtenderSettings
from kube.api.client import KubeClient, connect
from policy.errors import SettingsError
from service.exit_codes import Exit
from service.health import Health
from service.process import Stop
from service.runner import RunningService
from state.history.runs import PostgresHistory
from state.ledger.usage_metrics import UsageMetrics
from state.nodes.postgres import PostgresSeenNodes
from state.outlook.postgres import PostgresOutlook
from state.past.postgres import PostgresPast
from state.promises.postgres import PostgresPromises
from webhook.app import WebhookSettings, WebhookState, run_webhook

_POLL_SECONDS = 0.05


async def run_everything(options: Namespace, stop: Stop) -> Exit:
    """Run database, webhook, extender and, without a kubeconfig, a simulated cluster."""
    data = _make_directory(Path(options.data_dir))
    banner.say_starting(makes_database=not (options.database_url or (data / "postgres").exists()))
    async with AsyncExitStack() as stack:
        simulation: Simulation | None = None
        if options.kubeconfig is None:
            simulated = run_simulation(options.cluster_listen, data)
            simulation = await stack.enter_async_context(simulated)
            options.kubeconfig = str(simulation.kubeconfig)
        client = await stack.enter_async_context(connect(options.kubeconfig))
        webhook, extender = await stack.enter_async_context(_services(options, data, client))
        parts = [webhook.health, extender.health]
        if simulation:
            await simulation.call_webhook(client, webhook.url, ca=data / "certs" / "ca.crt")
            await stack.enter_async_context(simulation.at_work(extender_url=extender.url))
            parts.append(simulation.health)
        if await _wait_until_ready(parts):
            banner.say_running(
                webhook=webhook.url,
                extender=extender.url,
                cluster=simulation.url if simulation else None,
                kubeconfig=options.kubeconfig,
                data=data,
            )
        code = await wait_until_stopped(stop, parts)
        if code is Exit.OK:
            banner.say_stopping()
        else:
            banner.say_failed([reason for health in parts for reason in health.reasons()])
        return code


async def _wait_until_ready(parts: Sequence[Health]) -> bool:
    """Wait until all parts are ready (True) or one has failed (False)."""
    while not all(health.is_ready for health in parts):
        if not all(health.is_alive for health in parts):
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


@asynccontextmanager
async def _services(
    options: Namespace, data: Path, client: KubeClient
) -> AsyncIterator[tuple[RunningService, RunningService]]:
    """Run webhook and extender with one database, and one log each."""
    database_url = options.database_url or f"embedded:{data / 'postgres'}"
    webhook_settings = WebhookSettings(
        address=options.webhook_listen, namespace=options.namespace, certificates=data / "certs"
    )
    extender_settings = ExtenderSettings(
        address=options.extender_listen, namespace=options.namespace
    )
    spools = data / "spool"
    async with (
        open_own_database(database_url, service="run") as database,
        open_log(database, spool=spools / "webhook", is_mirrored=True) as webhook_log,
        open_log(database, spool=spools / "extender") as extender_log,
        open_ledger(database, listen_url=options.database_listen_url) as (ledger, usage),
        run_webhook(
            webhook_settings,
            client=client,
            state=WebhookState(
                log=webhook_log,
                ledger=ledger,
                usage=usage,
                seen_nodes=PostgresSeenNodes(database.pool),
                outlook=PostgresOutlook(database.pool),
                promises=PostgresPromises(database.pool),
                past=PostgresPast(database.pool),
            ),
        ) as webhook,
        run_extender(
            extender_settings,
            client=client,
            log=extender_log,
            ledger=ledger,
            seen_nodes=PostgresSeenNodes(database.pool),
            history=PostgresHistory(database.pool, keep_days=options.keep_history_days),
            promises=PostgresPromises(database.pool),
            outlook=PostgresOutlook(database.pool),
        ) as extender,
    ):
        supervise_state(webhook, database, webhook_log, retention=read_retention(options))
        supervise_usage(webhook, usage)
        UsageMetrics(extender.registry, usage)
        extender.supervisor.start("decision log", extender_log.run())
        yield webhook, extender


def _make_directory(path: Path) -> Path:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise SettingsError(
            f"cannot use the data directory {path}: {exc.strerror}; set another one with --data-dir"
        ) from exc
    return path.absolute()
