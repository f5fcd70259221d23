"""Puts the extender together: feeds, state, verbs, routes, background tasks."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from aiohttp import web

from extender.hived_routes import HivedRoutes
from extender.inspection import InspectionRoutes
from extender.leases import expire_leases, see_preemptions_through
from extender.metrics import StateMetrics
from extender.parts import State, Upkeep, Verbs
from extender.pods import NodeSink
from extender.recovery import RECOVERED, USABLE_CLUSTER, recover
from extender.routes import VerbRoutes
from kube import marks
from kube.client import KubeClient, Object
from kube.feed import Feed, Sink
from kube.trimming import trim_node, trim_pod
from policy.errors import SettingsError
from service.health import Health
from service.http import build_app
from service.metrics import ServiceMetrics
from service.running import RunningService, running
from service.settings import Address
from service.tasks import Supervisor
from state.ledger import Ledger
from state.log import DecisionLog
from state.log_metrics import LogMetrics

# 5,000 whole nodes of some kilobytes each, with room to spare.
_MAX_BODY_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderSettings:
    """How one extender runs."""

    address: Address
    namespace: str = "cellgate-system"
    """Where the policy documents are."""
    cluster_file: Path | None = None
    """The cluster document as a file, instead of a ConfigMap."""
    lease_seconds: float = 60.0
    """How long unbound places stay held; too short, and a slow gang never gets together."""
    preempt_patience_seconds: float = 5.0
    """How long kube-scheduler has to ask whom to preempt, before we end victims by ourselves; it
    asks in the same cycle as filter, or not at all."""
    allows_insecure_http: bool = False
    """Serve plain HTTP beyond loopback: whoever reaches the address can then bind pods."""

    def check(self) -> None:
        """Raise SettingsError for settings that are not safe."""
        if not self.address.is_loopback and not self.allows_insecure_http:
            raise SettingsError(
                f"{self.address.flag} {self.address} is not loopback, and the extender's verbs can "
                "bind pods: listen on 127.0.0.1, or run `cellgate extender` with --insecure-http"
            )


@asynccontextmanager
async def run_extender(
    settings: ExtenderSettings,
    *,
    client: KubeClient,
    log: DecisionLog,
    ledger: Ledger | None = None,
) -> AsyncIterator[RunningService]:
    """Run an extender while the body runs; its health says when it is ready.

    Without a ledger nobody confirms what the webhook charges: only for tests.
    """
    settings.check()
    measured = ServiceMetrics()
    state = State(
        client=client,
        log=log,
        ledger=ledger,
        registry=measured.registry,
        cluster_file=settings.cluster_file,
        lease_seconds=settings.lease_seconds,
    )
    if state.file is not None:
        await state.file.load()
    sources = _sources(state, settings.namespace)
    health = Health([*map(_synced, sources), USABLE_CLUSTER, RECOVERED])
    feeds = {name: _feed(client, name, source, health) for name, source in sources.items()}
    verbs = Verbs(state, client)
    upkeep = Upkeep(state, verbs, client)
    app = _build_app(state, verbs, feeds=feeds, health=health, measured=measured)
    async with running(app, name="extender", health=health, address=settings.address) as extender:
        _start(extender.supervisor, state, verbs, feeds=feeds)
        extender.supervisor.start(
            "upkeep", _recover_and_keep(state, upkeep, feeds=feeds, health=health)
        )
        extender.supervisor.start(
            "preemptions",
            see_preemptions_through(
                state.waiting,
                verbs.preemption,
                clock=state.clock,
                patience_seconds=settings.preempt_patience_seconds,
            ),
        )
        yield extender


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Where a feed gets its objects, and where they go."""

    path: str
    sink: Sink
    query: Mapping[str, str] = field(default_factory=dict)
    trim: Callable[[Object], Object] | None = None


def _sources(state: State, namespace: str) -> dict[str, _Source]:
    return {
        "policies": _Source(
            path=f"/api/v1/namespaces/{namespace}/configmaps",
            sink=state.policies,
            query={"labelSelector": marks.POLICY_LABEL},
        ),
        "namespaces": _Source(path="/api/v1/namespaces", sink=state.namespaces),
        "nodes": _Source(path="/api/v1/nodes", sink=NodeSink(state.cluster), trim=trim_node),
        "pods": _Source(path="/api/v1/pods", sink=state.pods, trim=trim_pod),
    }


def _synced(name: str) -> str:
    return f"{name} synced"


def _feed(client: KubeClient, name: str, source: _Source, health: Health) -> Feed:
    return Feed(
        client,
        source.path,
        sink=source.sink,
        query=source.query,
        trim=source.trim,
        on_synced=partial(health.meet, _synced(name)),
    )


def _build_app(
    state: State,
    verbs: Verbs,
    *,
    feeds: Mapping[str, Feed],
    health: Health,
    measured: ServiceMetrics,
) -> web.Application:
    LogMetrics(measured.registry, state.log)
    StateMetrics(
        measured.registry,
        cluster=state.cluster,
        census=state.census,
        waiting=state.waiting,
        feeds=feeds,
        count_problems=state.count_problems,
    )
    app = build_app(health=health, metrics=measured, max_body_bytes=_MAX_BODY_BYTES)
    VerbRoutes(verbs, health, state.metrics).add_to(app)
    InspectionRoutes(
        cluster=state.cluster,
        snapshots=state.snapshots,
        waiting=state.waiting,
        explainer=verbs.explainer,
        log=state.log,
        health=health,
    ).add_to(app)
    HivedRoutes(cluster=state.cluster, snapshots=state.snapshots, pods=state.pods).add_to(app)
    return app


def _start(
    supervisor: Supervisor,
    state: State,
    verbs: Verbs,
    *,
    feeds: Mapping[str, Feed],
) -> None:
    """Start everything that runs beside the answers."""
    for name, feed in feeds.items():
        # A pod's VC may be its namespace's: those are known first.
        work = feed.run() if name != "pods" else _run_after(feeds["namespaces"], feed)
        supervisor.start(f"{name} feed", work)
    supervisor.start("PodGroups", state.groups.run())
    supervisor.start("topology", state.keeper.run())
    supervisor.start("events", state.events.run())
    supervisor.start("victims", verbs.victims.run())
    if state.file is not None:
        supervisor.start("cluster file", state.file.run())


async def _run_after(first: Feed, second: Feed) -> None:
    await first.synced.wait()
    await second.run()


async def _recover_and_keep(
    state: State,
    upkeep: Upkeep,
    *,
    feeds: Mapping[str, Feed],
    health: Health,
) -> None:
    await state.groups.looked.wait()
    for feed in feeds.values():
        await feed.synced.wait()
    await recover(
        policies=state.policies,
        keeper=state.keeper,
        cluster=state.cluster,
        pods=state.pods,
        halves=upkeep.halves,
        health=health,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(state.census.run())
        group.create_task(expire_leases(state.cluster, clock=state.clock, metrics=state.metrics))
        group.create_task(state.reconciler.run())
        group.create_task(upkeep.halves.run())
        group.create_task(upkeep.waker.run())
        if state.bookkeeper is not None:
            group.create_task(state.bookkeeper.run())
