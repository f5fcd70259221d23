"""Puts the extender together: feeds, state, verbs, routes, background tasks."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Middleware

from certs.clients import SCHEDULER
from certs.serving import ServingCertificates
from certs.store import CertificateStore
from extender.feeds.pod_feed import NodeSink
from extender.inspection.access import Guard
from extender.inspection.hived_routes import HivedRoutes
from extender.inspection.routes import InspectionRoutes
from extender.inspection.tokens import TokenCheck
from extender.metrics import StateMetrics
from extender.settings import ExtenderSettings
from extender.term import Leading, NoRivals
from extender.upkeep.lease_expiry import expire_leases, see_preemptions_through
from extender.upkeep.recovery import recover
from extender.verbs.routes import VerbRoutes
from extender.wiring import State, Upkeep, Verbs
from kube import marks
from kube.api.client import KubeClient, Object
from kube.api.feed import Feed, Sink, paused
from kube.api.leader_label import LeaderLabel
from kube.api.leadership import Leadership
from kube.api.token_reviews import Reviews
from kube.read.trimming import trim_node, trim_pod
from service.clock import Clock
from service.health import Health
from service.http import build_app
from service.metrics import ServiceMetrics
from service.running import RunningService, running
from service.tasks import Supervisor, in_slices
from state.ledger.ledger import Ledger
from state.log.log import DecisionLog
from state.log.metrics import LogMetrics

# 5,000 whole nodes of some kilobytes each, with room to spare.
_MAX_BODY_BYTES = 64 * 2**20

_USABLE_CLUSTER = "a cluster document that can be used"
_ABLE_TO_LEAD = "state recovered from running pods, or another replica leads"
_CONDITIONS = (_USABLE_CLUSTER, _ABLE_TO_LEAD)


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
        leading=_build_leading(settings, client),
        log=log,
        ledger=ledger,
        registry=measured.registry,
        cluster_file=settings.cluster_file,
        lease_seconds=settings.lease_seconds,
    )
    if state.file is not None:
        await state.file.load()
    sources = _sources(state, settings.namespace)
    health = Health([*map(_synced, sources), *_CONDITIONS])
    feeds = {name: _feed(client, name, source, health) for name, source in sources.items()}
    verbs = Verbs(state, client)
    certificates = _load_certificates(settings)
    guard = _build_guard(client) if certificates else None
    app = _build_app(state, verbs, feeds=feeds, health=health, measured=measured, guard=guard)
    tls = certificates.context if certificates else None
    async with running(
        app, name="extender", health=health, address=settings.address, tls=tls
    ) as extender:
        upkeep = Upkeep(state, verbs, client)
        work = _lead(state, verbs, upkeep, feeds=feeds, health=health, settings=settings)
        extender.supervisor.start("leadership", work)
        _start(extender.supervisor, state, feeds=feeds)
        if certificates is not None:
            extender.supervisor.start("certificates", certificates.run())
        yield extender


def _load_certificates(settings: ExtenderSettings) -> ServingCertificates | None:
    if not settings.serves_tls or settings.certificates is None:
        return None
    store = CertificateStore(settings.certificates, serving="extender")
    return ServingCertificates(
        store,
        hosts=settings.hosts,
        clients=[SCHEDULER],
        client_ca=store.ca_path,
        utc_now=Clock().now,
    )


def _build_guard(client: KubeClient) -> Middleware:
    clock = Clock()
    tokens = TokenCheck(Reviews(client), monotonic=clock.monotonic)
    return Guard(tokens, utc_now=clock.now).middleware


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
        "nodes": _Source(
            path="/api/v1/nodes", sink=NodeSink(state.cluster, state.node_choice), trim=trim_node
        ),
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
    guard: Middleware | None,
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
    app = build_app(health=health, metrics=measured, max_body_bytes=_MAX_BODY_BYTES, guard=guard)
    VerbRoutes(verbs, state.leading, health, state.metrics).add_to(app)
    InspectionRoutes(
        cluster=state.cluster,
        snapshots=state.snapshots,
        waiting=state.waiting,
        explainer=verbs.explainer,
        log=state.log,
        health=health,
    ).add_to(app)
    state.leading.add_to(app)
    HivedRoutes(cluster=state.cluster, snapshots=state.snapshots, pods=state.pods).add_to(app)
    return app


def _start(supervisor: Supervisor, state: State, *, feeds: Mapping[str, Feed]) -> None:
    """Start everything that runs beside the answers."""
    for name, feed in feeds.items():
        # A pod's VC may be its namespace's: those are known first.
        work = feed.run() if name != "pods" else _run_after(feeds["namespaces"], feed)
        supervisor.start(f"{name} feed", work)
    supervisor.start("PodGroups", state.groups.run())
    supervisor.start("topology", state.keeper.run())
    supervisor.start("events", state.events.run())
    if state.file is not None:
        supervisor.start("cluster file", state.file.run())


async def _run_after(first: Feed, second: Feed) -> None:
    await first.synced.wait()
    await second.run()


async def _lead(
    state: State,
    verbs: Verbs,
    upkeep: Upkeep,
    *,
    feeds: Mapping[str, Feed],
    health: Health,
    settings: ExtenderSettings,
) -> None:
    """Get to know everything, lead when it is our turn, and go on until we do not lead any more."""
    await state.groups.looked.wait()
    for feed in feeds.values():
        await feed.synced.wait()
    await state.keeper.usable.wait()
    health.meet(_USABLE_CLUSTER)
    await state.leading.acquire(on_wait=partial(health.meet, _ABLE_TO_LEAD))
    await state.leading.catch_up(feeds["pods"].reach)
    await state.leading.recover(_take_in(state, upkeep, feeds=feeds))
    health.meet(_ABLE_TO_LEAD)
    async with asyncio.TaskGroup() as group:
        for work in _work_of_leader(state, verbs, upkeep, settings=settings):
            group.create_task(work)


def _work_of_leader(
    state: State, verbs: Verbs, upkeep: Upkeep, *, settings: ExtenderSettings
) -> Iterator[Coroutine[Any, Any, None]]:
    yield state.leading.keep()
    yield state.leading.show()
    yield verbs.planner.run()
    yield verbs.victims.run()
    yield state.census.run()
    yield expire_leases(
        state.cluster,
        being_bound=verbs.binding.under_way,
        clock=state.clock,
        metrics=state.metrics,
    )
    yield state.reconciler.run()
    yield upkeep.halves.run()
    yield upkeep.waker.run()
    if state.bookkeeper is not None:
        yield state.bookkeeper.run()
    if state.quota_queue is not None:
        yield state.quota_queue.run()
    yield see_preemptions_through(
        state.waiting,
        verbs.preemption,
        clock=state.clock,
        patience_seconds=settings.preempt_patience_seconds,
    )


async def _take_in(state: State, upkeep: Upkeep, *, feeds: Mapping[str, Feed]) -> None:
    """Begin our term with all that is known at this moment; what happens since waits."""
    with paused(feeds.values()):
        state.begin_term()
        steps = recover(
            keeper=state.keeper,
            cluster=state.cluster,
            pods=state.pods,
            halves=upkeep.halves,
            reranker=state.reranker,
            now=state.clock.monotonic(),
        )
        await in_slices(steps)


def _build_leading(settings: ExtenderSettings, client: KubeClient) -> Leading:
    clock = Clock()
    if settings.leadership is None:
        return Leading(NoRivals(clock))
    term = Leadership(client, settings.leadership, monotonic=clock.monotonic, utc_now=clock.now)
    if settings.pod_name is None:
        return Leading(term)
    label = LeaderLabel(client, namespace=settings.leadership.namespace, pod=settings.pod_name)
    return Leading(term, label=label)
