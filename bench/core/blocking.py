"""What blocks the leader's loop: the longest piece of each large change.

There are 5,000 nodes and 7,400 gangs. The cells are derived from nodes in racks of 16. Two VCs were
promised somewhat less than half of the nodes each; all nodes are used, about half of them by two
gangs. CPU time: the loop answers no call within a piece.
"""

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from bench.report import Result
from extender.cells.model import OPPORTUNISTIC, MemberRequest, PlacedMember, Preempt
from extender.cells.views.listings import run_to_end
from extender.cluster.cluster import Cluster
from extender.cluster.journal import DecisionContext, NoJournal
from kube.read.nodes import KubeNode
from policy.placement import Placement
from policy.submission import GangKey, LeafType, NodeName, PodUid, VcName
from policy.topology import CellTypeName, ChainName
from service.garbage import settle_collector
from state.log.records import RowKind

_NODES: Final = 5000
_SHARED: Final = 2400
"""Nodes with two gangs; the others have one."""
_RACK: Final = 16
_TOGETHER: Final = 64
_LEAVES: Final = 8
_RACK_LABEL: Final = "topology.kubernetes.io/rack"
_NODE_LABEL: Final = "kubernetes.io/hostname"
_PRODUCT: Final = "nvidia.com/gpu.product"
_NANOSECONDS_PER_MS: Final = 1e6
_SLICE_NANOSECONDS: Final = 2_000_000
"""As long as a slice of `service.tasks.in_slices`."""

Pieces = Iterator[float]
"""CPU milliseconds of each piece of a change."""


def measure(*, is_quick: bool) -> list[Result]:
    """Time each kind of change on a cluster of its own, except those that decide only."""
    results: list[Result] = []
    for change, do in _CHANGES.items():
        cluster = _filled()
        settle_collector()  # as a service does after recovery
        pieces = list(do(cluster))
        case: dict[str, int | str] = {"change": change}
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
    return _slices(lambda: cluster.use_document_stepwise(_document(share=8)))


def _cut_promises(cluster: Cluster) -> Pieces:
    return _slices(lambda: cluster.use_document_stepwise(_document(share=4)))


def _lose_backing(cluster: Cluster) -> Pieces:
    """So many nodes leave that promises in use are cut."""
    for index in range(_NODES - 500, _NODES):
        yield _time(partial(cluster.forget_node, _node(index).name))
    yield from _slices(cluster.refresh_topology_stepwise)


def _join_together(cluster: Cluster) -> Pieces:
    for index in range(_TOGETHER):
        yield _time(partial(cluster.observe_node, _node(100_000 + index)))
    yield from _slices(cluster.refresh_topology_stepwise)


def _new_leaf_type(cluster: Cluster) -> Pieces:
    node = _node(100_000)
    labels = {**node.labels, _PRODUCT: "H100"}
    yield _time(
        lambda: cluster.observe_node(replace(node, labels=labels, leaf_type=LeafType("H100")))
    )
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
    request = replace(_request("preemptor", sizes, vc="a"), priority=9)
    yield from _slices(partial(cluster.prepare_stepwise, request))
    assert cluster.is_ready(request)
    began = time.process_time_ns()
    context = DecisionContext(kind=RowKind.PLACEMENT, now=0.0, applies_preemption=True)
    decision = cluster.decide(request, candidate_nodes=cluster.nodes, context=context)
    yield (time.process_time_ns() - began) / _NANOSECONDS_PER_MS
    assert isinstance(decision, Preempt), decision


_CHANGES: Final[dict[str, Callable[[Cluster], Pieces]]] = {
    "document": _use_document,
    "promises cut": _cut_promises,
    "nodes lost in use": _lose_backing,
    "64 nodes join": _join_together,
    "new leaf type": _new_leaf_type,
    "rerank": _rerank,
    "first preemption": _first_preemption,
    "preemption beside ending gangs": _preemption_beside_ending,
    "preemption of 64 nodes": _large_preemption,
}


def _filled() -> Cluster:
    cluster = Cluster(lease_seconds=3600, journal=NoJournal())
    for index in range(_NODES):
        cluster.observe_node(_node(index))
    cluster.use_document(_document(share=9))
    running = [member for index in range(_NODES) for member in _members(index)]
    run_to_end(cluster.recover_stepwise(running, released=[], now=0.0))
    return cluster


def _members(index: int) -> Iterator[PlacedMember]:
    sizes = [4, 4] if index < _SHARED else [8]
    for part, size in enumerate(sizes):
        first = part * 4
        # VC a is full: half of the nodes are its own, a tenth of all gangs are opportunistic.
        request = _request(f"{index}-{part}", (size,), vc="a" if index % 2 else "b")
        priority = OPPORTUNISTIC if index % 10 == 0 else 1
        yield PlacedMember(
            request=replace(request, priority=priority),
            placement=Placement(
                node=_node(index).name,
                leaf_cells=tuple(range(first, first + size)),
                chain=ChainName("A100"),
                vc_cell_type=CellTypeName(_NODE_LABEL) if priority > 0 else None,
            ),
        )


def _request(name: str, sizes: tuple[int, ...], *, vc: str) -> MemberRequest:
    return MemberRequest(
        member=PodUid(f"pod-{name}"),
        gang=GangKey("bench", name),
        leaf_count=sizes[0],
        gang_leaf_counts=sizes,
        vc=VcName(vc),
    )


def _node(index: int) -> KubeNode:
    return KubeNode(
        name=NodeName(f"node-{index:06}"),
        is_healthy=True,
        labels={_RACK_LABEL: f"rack-{index // _RACK:04}", _PRODUCT: "A100"},
        leaf_counts={"nvidia.com/gpu": _LEAVES},
        usable_count=_LEAVES,
        leaf_type=LeafType("A100"),
    )


def _document(*, share: int) -> str:
    """Each of two VCs was promised so many twentieths of the nodes."""
    vcs = "".join(
        f"\n  {name}:\n    virtualCells:\n    - {{leafType: A100, level: {_NODE_LABEL}, "
        f"cellNumber: {_NODES * share // 20}}}"
        for name in "ab"
    )
    return (
        "apiVersion: cellgate.io/v1\nkind: Cluster\nnodeTopology:\n"
        f"- levels: [{_RACK_LABEL}, {_NODE_LABEL}]\n"
        f"  leafResource: nvidia.com/gpu\n  leafTypeLabel: {_PRODUCT}\n"
        f"virtualClusters:{vcs}\n"
    )
