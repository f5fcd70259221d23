"""Runs one extender: feeds, routes, recovery, and the background tasks of the leader."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, NoReturn

from aiohttp import web
from aiohttp.typedefs import Middleware

from certs.clients import SCHEDULER
from certs.serving_certificates import ServingCertificates
from certs.store import CertificateStore
from extender.feeds.node_feed import NodeSink
from extender.feeds.room_feed import RoomSink
from extender.history.prediction_routes import PredictionRoutes
from extender.history.run_routes import RunRoutes
from extender.history.turns import HistoryTurns
from extender.inspection.access import AccessGuard
from extender.inspection.gang_runs import GangRuns
from extender.inspection.hived_routes import HivedRoutes
from extender.inspection.leader_only import only_the_leader
from extender.inspection.node_views import NodeViews
from extender.inspection.queue.queue_routes import QueueRoutes
from extender.inspection.routes import InspectionRoutes
from extender.inspection.tokens import TokenCheck
from extender.leader_role import LeaderRole, SoleReplica
from extender.metrics import StateMetrics
from extender.settings import ExtenderSettings
from extender.simulate.simulator import Simulator
from extender.simulate_wiring import build_simulator, build_windows
from extender.upkeep.lease_expiry import expire_leases
from extender.upkeep.recovery import recover
from extender.upkeep.unasked_preemption import preempt_unasked
from extender.upkeep_wiring import ExtenderUpkeep
from extender.verbs.routes import VerbRoutes
from extender.verbs_wiring import ExtenderVerbs
from extender.wiring import ExtenderState
from kube.api.client import KubeClient
from kube.api.feed import Feed, FeedSource, paused
from kube.api.leadership import LeaderLabel, Leadership
from kube.api.token_reviews import AccessReviews
from kube.follow.disruption_budgets import PATH as BUDGETS_PATH
from kube.follow.volumes import follow_volumes
from kube.read.trimming import trim_node, trim_pod
from service.clock import Clock
from service.health import Health
from service.http import build_app
from service.metrics import ServiceMetrics
from service.runner import RunningService, run_service
from service.tasks import Supervisor, in_slices
from state.history.runs import RunHistory
from state.ledger.ledger import Ledger
from state.log.log import DecisionLog
from state.log.metrics import LogMetrics
from state.nodes.seen_nodes import SeenNodes
from state.outlook.outlook import OutlookStore
from state.promises.promises import PromiseStore

# 5,000 whole nodes of some kilobytes each, and a margin.
_MAX_BODY_BYTES = 64 * 2**20
_BUDGETS_AGAIN_SECONDS: Final = 60.0

_USABLE_CLUSTER = "a valid Cluster document"
_ABLE_TO_LEAD = "state recovered from running pods, or another replica leads"
_CONDITIONS = (_USABLE_CLUSTER, _ABLE_TO_LEAD)


@asynccontextmanager
async def run_extender(
    settings: ExtenderSettings,
    *,
    client: KubeClient,
    log: DecisionLog,
    ledger: Ledger | None = None,
    seen_nodes: SeenNodes | None = None,
    history: RunHistory | None = None,
    promises: PromiseStore | None = None,
    outlook: OutlookStore | None = None,
) -> AsyncIterator[RunningService]:
    """Run an extender while the body runs; its health says when it is ready.

    Without a ledger, which only tests do, charges of the webhook are never confirmed. Without
    `seen_nodes` the webhook does not know which nodes there are, without a history no replica knows
    which runs are recorded, without `promises` a reservation ends with its leader, and without an
    `outlook` webhooks do not say when new gangs would start.
    """
    settings.check()
    clock, measured = Clock(), ServiceMetrics()
    state = ExtenderState(
        client=client,
        clock=clock,
        leading=_build_role(settings, client, clock),
        log=log,
        ledger=ledger,
        registry=measured.registry,
        settings=settings,
        history=history,
    )
    if state.file is not None:
        await state.file.load()
    sources = _sources(state, settings.namespace)
    health = Health([*map(_synced, sources), *_CONDITIONS])
    feeds = {
        name: Feed(client, source, clock=clock, on_synced=partial(health.meet, _synced(name)))
        for name, source in sources.items()
    }
    verbs = ExtenderVerbs(state, client, is_stopping=lambda: health.is_draining)
    _use_stores(state, verbs, promises=promises, outlook=outlook)
    certificates = _load_certificates(settings, clock)
    guard = _build_guard(client, clock) if certificates else None
    simulator = build_simulator(state, verbs, client, ledger=ledger, seen_nodes=seen_nodes)
    app = _build_app(
        state, verbs, simulator, feeds=feeds, health=health, measured=measured, guard=guard
    )
    tls = certificates.context if certificates else None
    async with run_service(
        app, name="extender", health=health, address=settings.address, tls=tls
    ) as extender:
        upkeep = ExtenderUpkeep(
            state, verbs, client, simulator=simulator, seen_nodes=seen_nodes, settings=settings
        )
        work = _lead(state, verbs, upkeep, feeds=feeds, health=health, settings=settings)
        extender.supervisor.start("leadership", work)
        _start(extender.supervisor, state, client, feeds=feeds)
        extender.supervisor.start("PodDisruptionBudgets", _follow_budgets(client, state))
        if certificates is not None:
            extender.supervisor.start("certificates", certificates.run())
        yield extender


def _load_certificates(settings: ExtenderSettings, clock: Clock) -> ServingCertificates | None:
    if not settings.serves_tls or settings.certificates is None:
        return None
    store = CertificateStore(settings.certificates, serving="extender")
    return ServingCertificates(
        store,
        hosts=settings.hosts,
        clients=[SCHEDULER],
        client_ca=store.ca_path,
        utc_now=clock.now,
    )


def _use_stores(
    state: ExtenderState,
    verbs: ExtenderVerbs,
    *,
    promises: PromiseStore | None,
    outlook: OutlookStore | None,
) -> None:
    if promises is not None:
        verbs.promises.use(promises)
    if outlook is not None:
        state.forecasts.outlooks.use(outlook)


def _build_guard(client: KubeClient, clock: Clock) -> Middleware:
    tokens = TokenCheck(AccessReviews(client), monotonic=clock.monotonic)
    return AccessGuard(tokens, utc_now=clock.now).middleware


def _sources(state: ExtenderState, namespace: str) -> dict[str, FeedSource]:
    return {
        "policies": state.policies.source(namespace),
        "namespaces": FeedSource(path="/api/v1/namespaces", sink=state.namespaces),
        "nodes": FeedSource(
            path="/api/v1/nodes", sink=NodeSink(state.cluster, state.fitting_nodes), trim=trim_node
        ),
        "pods": FeedSource(
            path="/api/v1/pods", sink=RoomSink(state.room, state.pods), trim=trim_pod
        ),
    }


def _synced(name: str) -> str:
    return f"{name} synced"


def _build_app(
    state: ExtenderState,
    verbs: ExtenderVerbs,
    simulator: Simulator,
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
        waiting=verbs.waiting,
        feeds=feeds,
        count_problems=state.count_problems,
        count_held=lambda: verbs.planner.held_gangs,
    )
    app = build_app(health=health, metrics=measured, max_body_bytes=_MAX_BODY_BYTES, guard=guard)
    app.middlewares.append(only_the_leader(state.leading, health))  # credentials are checked first
    VerbRoutes(verbs, state.leading, health, state.metrics).add_to(app)
    InspectionRoutes(
        cluster=state.cluster,
        snapshots=state.snapshots,
        waiting=verbs.waiting,
        explainer=verbs.explainer,
        simulator=simulator,
        runs=GangRuns(cluster=state.cluster, pods=state.pods, waiting=verbs.waiting),
        nodes=NodeViews(cluster=state.cluster, pods=state.pods, room=state.room),
        log=state.log,
    ).add_to(app)
    QueueRoutes(
        verbs.waiting,
        queues=lambda: state.policies.policy.queues,
        variants_of=verbs.explainer.variants_of,
    ).add_to(app)
    verbs.calendar.routes.add_to(app)
    build_windows(state, verbs).add_to(app)
    state.limits.add_to(app)
    state.leading.add_to(app)
    turns = HistoryTurns(state.history)
    RunRoutes(turns, log=state.log, utc_now=state.clock.now).add_to(app)
    PredictionRoutes(turns, utc_now=state.clock.now).add_to(app)
    HivedRoutes(
        cluster=state.cluster,
        snapshots=state.snapshots,
        pods=state.pods,
        downgrades=state.outcomes.downgrades,
    ).add_to(app)
    return app


def _start(
    supervisor: Supervisor, state: ExtenderState, client: KubeClient, *, feeds: Mapping[str, Feed]
) -> None:
    """Start the background tasks that every replica has."""
    for name, feed in feeds.items():
        # A pod may get its VC from its namespace, so namespaces must be known first.
        work = feed.run() if name != "pods" else _run_after(feeds["namespaces"], feed)
        supervisor.start(f"{name} feed", work)
    supervisor.start("PodGroups", state.groups.run())
    supervisor.start("volumes", follow_volumes(state.volumes, client, state.clock))
    supervisor.start("topology", state.topology.run())
    supervisor.start("events", state.events.run())
    supervisor.start("policy expiry", state.policies.follow_time(state.clock))
    if state.history is not None:
        supervisor.start("history", state.runs.check_forever(lambda: state.leading.is_leading))
    if state.file is not None:
        supervisor.start("cluster file", state.file.run())


async def _follow_budgets(client: KubeClient, state: ExtenderState) -> NoReturn:
    """Follow budgets for as long as they can be read; no start waits for them."""
    source = FeedSource(path=BUDGETS_PATH, sink=state.budgets, is_optional=True)
    while True:
        await Feed(client, source, clock=state.clock).run()
        await asyncio.sleep(_BUDGETS_AGAIN_SECONDS)


async def _run_after(first: Feed, second: Feed) -> None:
    await first.synced.wait()
    await second.run()


async def _lead(
    state: ExtenderState,
    verbs: ExtenderVerbs,
    upkeep: ExtenderUpkeep,
    *,
    feeds: Mapping[str, Feed],
    health: Health,
    settings: ExtenderSettings,
) -> None:
    """Wait until everything is known, then for leadership; recover, and work until it is lost."""
    await state.groups.synced.wait()
    for feed in feeds.values():
        await feed.synced.wait()
    await state.topology.usable.wait()
    health.meet(_USABLE_CLUSTER)
    await state.leading.acquire(on_wait=partial(health.meet, _ABLE_TO_LEAD))
    await state.leading.catch_up(feeds["pods"].reach)
    await state.leading.recover(_recover(state, upkeep, feeds=feeds))
    health.meet(_ABLE_TO_LEAD)
    async with asyncio.TaskGroup() as group:
        for work in _leader_tasks(state, verbs, upkeep, settings=settings):
            group.create_task(work)


def _leader_tasks(
    state: ExtenderState,
    verbs: ExtenderVerbs,
    upkeep: ExtenderUpkeep,
    *,
    settings: ExtenderSettings,
) -> Iterator[Coroutine[Any, Any, None]]:
    yield state.leading.keep()
    yield state.leading.show()
    yield verbs.planner.run()
    yield verbs.promises.run()
    yield verbs.queue_order.run()
    yield verbs.calendar.notices.run()
    yield verbs.kept_holds.run()
    yield verbs.swaps.run()
    yield verbs.wishes.run()
    yield state.reranker.run()
    yield state.outcomes.notes.run(upkeep.gate_messages, writing=verbs.pending.writing)
    yield verbs.evictions.run()
    yield state.reclaims.run()
    yield state.budget_sync.run()
    yield state.run_protection.run()
    yield state.census.run()
    yield state.runs.run()
    yield state.forecasts.run()
    yield expire_leases(
        state.cluster,
        being_bound=verbs.calls.under_way,
        clock=state.clock,
        metrics=state.metrics,
    )
    yield state.reconciler.run()
    yield upkeep.half_bound.run()
    yield upkeep.quarantine.run()
    yield upkeep.waker.run()
    if state.ledger_sync is not None:
        yield state.ledger_sync.run()
        yield state.reclaimed_ages.run()
    if state.quota_queue is not None:
        yield state.quota_queue.run()
    if state.class_raiser is not None:
        yield state.class_raiser.run()
    if upkeep.node_recorder is not None:
        yield upkeep.node_recorder.run()
    if upkeep.ca_publisher is not None:
        yield upkeep.ca_publisher.run()
    if upkeep.elastic is not None:
        yield upkeep.elastic.run()
    if upkeep.provisioning is not None:
        yield upkeep.provisioning.run()
    yield preempt_unasked(
        state.outcomes.waiting,
        verbs.preemption,
        clock=state.clock,
        patience_seconds=settings.preempt_patience_seconds,
    )


async def _recover(
    state: ExtenderState, upkeep: ExtenderUpkeep, *, feeds: Mapping[str, Feed]
) -> None:
    """Begin a leadership term: build the state from what is known now, while the feeds pause."""
    with paused(feeds.values()):
        state.begin_term()
        steps = recover(
            topology=state.topology,
            cluster=state.cluster,
            pods=state.pods,
            half_bound=upkeep.half_bound,
            late_leases=upkeep.late_leases,
            reranker=state.reranker,
            now=state.clock.monotonic(),
        )
        await in_slices(steps)


def _build_role(settings: ExtenderSettings, client: KubeClient, clock: Clock) -> LeaderRole:
    if settings.leadership is None:
        return LeaderRole(SoleReplica(clock))
    election = Leadership(client, settings.leadership, monotonic=clock.monotonic, utc_now=clock.now)
    if settings.pod_name is None:
        return LeaderRole(election)
    label = LeaderLabel(client, namespace=settings.leadership.namespace, pod=settings.pod_name)
    return LeaderRole(election, label=label)
