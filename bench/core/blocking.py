"""What blocks the leader's loop: the longest piece of each large change.

There are 5,000 nodes and 7,400 gangs (`busy_clusters`). The cells are derived from nodes. CPU time:
the loop answers no call within a piece.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from bench.core import busy_clusters
from bench.core.busy_clusters import (
    NODES,
    RACK,
    SPARE,
    document,
    document_of_many_vcs,
    fill,
    fill_varied,
    fill_with_spare_racks,
    node,
    recover,
)
from bench.report import Result
from extender.cells.model import Preempt
from extender.cells.observe.reconfiguration import Effect, GangEffect
from extender.cells.views.listings import Stepwise
from extender.cluster.cluster import Cluster
from extender.cluster.journal import DecisionContext
from policy.submission import LeafType, PodUid
from service.garbage import settle_collector
from state.log.records import RowKind
from tests.support.extender.simulating import SimulatedWorld
from tests.support.kube.nodes import a_node
from tests.support.kube.pods import a_new_pod

_TOGETHER: Final = 64
_NANOSECONDS_PER_MS: Final = 1e6
_SLICE_NANOSECONDS: Final = 2_000_000
"""As long as a slice of `service.tasks.in_slices`."""

T = TypeVar("T")
Pieces = Iterator[float]
"""CPU milliseconds of each piece of a change."""
Change = Callable[[], Pieces]


def measure(*, is_quick: bool) -> list[Result]:
    """Time each kind of change on a cluster of its own, except those that decide only."""
    results: list[Result] = []
    for name, prepare in _CHANGES.items():
        change = prepare()
        settle_collector()  # as a service does after recovery
        pieces = list(change())
        case: dict[str, int | str] = {"change": name}
        results.append(Result(case=case, metric="longest_ms", value=max(pieces)))
        results.append(Result(case=case, metric="total_ms", value=sum(pieces)))
        gc.unfreeze()
    return results


def _time(work: Callable[[], object]) -> float:
    began = time.process_time_ns()
    work()
    return (time.process_time_ns() - began) / _NANOSECONDS_PER_MS


def _slices(begin: Callable[[], Iterator[object]]) -> Pieces:
    """Time the slices in which a service does work that yields."""
    began = time.process_time_ns()
    for _ in begin():
        if (now := time.process_time_ns()) - began >= _SLICE_NANOSECONDS:
            yield (now - began) / _NANOSECONDS_PER_MS
            began = time.process_time_ns()
    yield (time.process_time_ns() - began) / _NANOSECONDS_PER_MS


def _use_document(cluster: Cluster) -> Pieces:
    return _slices(lambda: cluster.use_document_stepwise(document(share=8)))


def _cut_promises(cluster: Cluster) -> Pieces:
    return _slices(lambda: cluster.use_document_stepwise(document(share=4)))


def _lose_backing(cluster: Cluster) -> Pieces:
    """So many nodes leave that promises in use are cut."""
    for index in range(NODES - 500, NODES):
        yield _time(partial(cluster.forget_node, node(index).name))
    yield from _slices(cluster.refresh_topology_stepwise)


def _lose_a_rack(cluster: Cluster) -> Pieces:
    """A rack leaves, so that gangs must be downgraded to keep the promise of another one."""
    for index in SPARE[:RACK]:
        yield _time(partial(cluster.forget_node, node(index).name))
    effects: list[GangEffect] = []

    def refresh() -> Stepwise[None]:
        effects.extend((yield from cluster.refresh_topology_stepwise()))

    yield from _slices(refresh)
    assert any(one.effect is Effect.DOWNGRADED for one in effects)


def _use_many_vcs(cluster: Cluster, *, is_ambiguous: bool) -> Pieces:
    """200 VCs share the cells fairly, and share them again when a node has left."""
    text = document_of_many_vcs(is_ambiguous=is_ambiguous)
    yield from _slices(lambda: cluster.use_document_stepwise(text))
    assert len(cluster.problems) > 1
    yield _time(partial(cluster.forget_node, node(7).name))
    yield from _slices(cluster.refresh_topology_stepwise)


def _join_together(cluster: Cluster) -> Pieces:
    for index in range(_TOGETHER):
        yield _time(partial(cluster.observe_node, node(100_000 + index)))
    yield from _slices(cluster.refresh_topology_stepwise)


def _new_leaf_type(cluster: Cluster) -> Pieces:
    plain = node(100_000)
    labels = {**plain.labels, busy_clusters.PRODUCT: "H100"}
    new = replace(plain, labels=labels, leaf_type=LeafType("H100"))
    yield _time(lambda: cluster.observe_node(new))
    yield from _slices(cluster.refresh_topology_stepwise)


def _rerank(cluster: Cluster) -> Pieces:
    ranks = {gang.gang: 3 for gang in cluster.gangs() if gang.priority == 1}
    return _slices(lambda: cluster.rerank_stepwise(ranks))


def _first_preemption(cluster: Cluster) -> Pieces:
    yield from _preempt(cluster, (8,) * 4)


def _preemption_beside_ending(cluster: Cluster) -> Pieces:
    for index in range(0, 200, 2):
        cluster.observe_ending(PodUid(f"pod-{index}-0"))
    yield from _preempt(cluster, (8,) * 4)


def _large_preemption(cluster: Cluster) -> Pieces:
    yield from _preempt(cluster, (8,) * 64)


def _preempt(cluster: Cluster, sizes: tuple[int, ...]) -> Pieces:
    """Prepare a decision and make it, as the planner does."""
    request = replace(busy_clusters.request("preemptor", sizes, vc="a"), priority=9)
    yield from _slices(partial(cluster.prepare_stepwise, request))
    assert cluster.is_ready(request)
    began = time.process_time_ns()
    context = DecisionContext(kind=RowKind.PLACEMENT, now=0.0, applies_preemption=True)
    decision = cluster.decide(request, candidate_nodes=cluster.nodes, context=context)
    yield (time.process_time_ns() - began) / _NANOSECONDS_PER_MS
    assert isinstance(decision, Preempt), decision


def _simulate_preemption(world: SimulatedWorld) -> Pieces:
    """Simulate a gang on a running loop: the times between two turns of another task."""
    pieces: list[float] = []

    async def simulate() -> None:
        ticking = asyncio.create_task(tick())
        told = await world.simulate(dict(pod), user="alice")
        ticking.cancel()
        assert isinstance(told.plan, Preempt), told

    async def tick() -> None:
        while True:
            began = time.process_time_ns()
            await asyncio.sleep(0)
            pieces.append((time.process_time_ns() - began) / _NANOSECONDS_PER_MS)

    pod = a_new_pod("p", namespace="lab").with_gpus(8).in_vc("a").of_class("prod")
    pod = pod.in_gang("g", size=4)
    asyncio.run(simulate())
    yield from pieces


def _fill_simulated() -> SimulatedWorld:
    world = SimulatedWorld(document(share=9))
    for index in range(NODES):
        one = node(index)
        found = a_node(one.name)
        for label, value in one.labels.items():
            found = found.labelled(label, value)
        offered = {"nvidia.com/gpu": "8", "cpu": "64", "pods": "110"}
        world.plans.nodes.upsert(found.with_status(capacity=offered, allocatable=offered))
    cluster = world.plans.shell.cluster
    cluster.refresh_topology()
    recover(cluster, spare=())
    return world


def _on(fill: Callable[[], T], change: Callable[[T], Pieces]) -> Callable[[], Change]:
    """Fill a cluster; what it returns changes that cluster."""

    def prepare() -> Change:
        return partial(change, fill())

    return prepare


_CHANGES: Final[dict[str, Callable[[], Change]]] = {
    "document": _on(fill, _use_document),
    "promises cut": _on(fill, _cut_promises),
    "promises of 200 VCs cut": _on(fill_varied, partial(_use_many_vcs, is_ambiguous=False)),
    "promises of 200 VCs spread": _on(fill_varied, partial(_use_many_vcs, is_ambiguous=True)),
    "nodes lost in use": _on(fill, _lose_backing),
    "rack lost, gangs downgraded": _on(fill_with_spare_racks, _lose_a_rack),
    "64 nodes join": _on(fill, _join_together),
    "new leaf type": _on(fill, _new_leaf_type),
    "rerank": _on(fill, _rerank),
    "first preemption": _on(fill, _first_preemption),
    "preemption beside ending gangs": _on(fill, _preemption_beside_ending),
    "preemption of 64 nodes": _on(fill, _large_preemption),
    "simulated preemption": _on(_fill_simulated, _simulate_preemption),
}
