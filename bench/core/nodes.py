"""Nodes that come, go and change while gangs run: what one of them costs, in clusters of two sizes.

The cluster's cells are derived from its nodes, in racks of 16; four of five nodes are used by gangs
of four. CPU time from the event until the cells are built: the extender answers no call meanwhile.
"""

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from bench.report import Result, percentile
from extender.cells.model import MemberRequest, PlacedMember
from extender.cells.views.listings import run_to_end
from extender.cluster.cluster import Cluster
from extender.cluster.journal import NoJournal
from kube.read.nodes import KubeNode
from policy.placement import Placement
from policy.submission import GangKey, LeafType, NodeName, PodUid, VcName
from policy.topology import CellTypeName, ChainName

_RACK: Final = 16
_LEAVES: Final = 8
_GANG: Final = 4
_RACK_LABEL: Final = "topology.kubernetes.io/rack"
_NODE_LABEL: Final = "kubernetes.io/hostname"
_TOGETHER: Final = 100
_NANOSECONDS_PER_MS: Final = 1e6


def measure(*, is_quick: bool) -> list[Result]:
    """Time each kind of change."""
    repeat = 10 if is_quick else 40
    return [result for nodes in (1000, 5000) for result in _measure_size(nodes, repeat)]


def _measure_size(nodes: int, repeat: int) -> Iterator[Result]:
    cluster = _filled(nodes)
    gc.collect()
    gc.freeze()  # as a service does after recovery
    for change, do in _CHANGES.items():
        times = [_time(cluster, do, nodes - 1 - 7 * index) for index in range(repeat)]
        yield Result(
            case={"nodes": nodes, "change": change}, metric="change_ms", value=percentile(times, 50)
        )
        yield Result(case={"nodes": nodes, "change": change}, metric="longest_ms", value=max(times))
    gc.unfreeze()


def _time(cluster: Cluster, do: Callable[[Cluster, int], None], index: int) -> float:
    began = time.process_time_ns()
    do(cluster, index)
    if cluster.is_stale:
        cluster.refresh_topology()
    return (time.process_time_ns() - began) / _NANOSECONDS_PER_MS


def _leave(cluster: Cluster, index: int) -> None:
    cluster.forget_node(_node(index).name)


def _join(cluster: Cluster, index: int) -> None:
    cluster.observe_node(_node(index))


def _relabel(cluster: Cluster, index: int) -> None:
    node = _node(index)
    cluster.observe_node(replace(node, labels={**node.labels, "driver": "550"}))


def _move(cluster: Cluster, index: int) -> None:
    node = _node(index)
    cluster.observe_node(replace(node, labels={**node.labels, _RACK_LABEL: "rack-0000"}))


def _move_back(cluster: Cluster, index: int) -> None:
    cluster.observe_node(_node(index))


def _fail(cluster: Cluster, index: int) -> None:
    cluster.observe_node(replace(_node(index), is_healthy=False))


def _leave_in_use(cluster: Cluster, index: int) -> None:
    cluster.forget_node(_node(index // 2).name)


def _join_in_use(cluster: Cluster, index: int) -> None:
    cluster.observe_node(_node(index // 2))


def _join_together(cluster: Cluster, index: int) -> None:
    for more in range(_TOGETHER):
        cluster.observe_node(_node(100_000 + index * _TOGETHER + more))


_CHANGES: Final[dict[str, Callable[[Cluster, int], None]]] = {
    "leave": _leave,
    "join": _join,
    "another label": _relabel,
    "another rack": _move,
    "its rack": _move_back,
    "unready": _fail,
    "ready": _join,
    "leave in use": _leave_in_use,
    "join in use": _join_in_use,
    "100 join": _join_together,
}
"""In this order: each finds the nodes as the one before it has left them."""


def _filled(nodes: int) -> Cluster:
    cluster = Cluster(lease_seconds=3600, journal=NoJournal())
    for index in range(nodes):
        cluster.observe_node(_node(index))
    cluster.use_document(_document(nodes))
    members = [_member(index) for index in range(nodes * 4 // 5)]
    run_to_end(cluster.recover_stepwise(members, released=[], now=0.0))
    return cluster


def _node(index: int) -> KubeNode:
    return KubeNode(
        name=NodeName(f"node-{index:06}"),
        is_healthy=True,
        labels={_RACK_LABEL: f"rack-{index // _RACK:04}", "nvidia.com/gpu.product": "A100"},
        leaf_counts={"nvidia.com/gpu": _LEAVES},
        usable_count=_LEAVES,
        leaf_type=LeafType("A100"),
    )


def _member(index: int) -> PlacedMember:
    request = MemberRequest(
        member=PodUid(f"pod-{index}"),
        gang=GangKey("bench", f"gang-{index // _GANG}"),
        leaf_count=_LEAVES,
        gang_leaf_counts=(_LEAVES,) * _GANG,
        vc=VcName("a" if index // _GANG % 2 else "b"),
    )
    place = Placement(
        node=_node(index).name,
        leaf_cells=tuple(range(_LEAVES)),
        chain=ChainName("A100"),
        vc_cell_type=CellTypeName(_NODE_LABEL),
    )
    return PlacedMember(request=request, placement=place)


def _document(nodes: int) -> str:
    """Each of two VCs was promised somewhat less than half of the nodes."""
    vcs = "".join(
        f"\n  {name}:\n    virtualCells:\n    - {{leafType: A100, level: {_NODE_LABEL}, "
        f"cellNumber: {nodes * 9 // 20}}}"
        for name in "ab"
    )
    return (
        "apiVersion: cellgate.io/v1\nkind: Cluster\nnodeTopology:\n"
        f"- levels: [{_RACK_LABEL}, {_NODE_LABEL}]\n"
        "  leafResource: nvidia.com/gpu\n  leafTypeLabel: nvidia.com/gpu.product\n"
        f"virtualClusters:{vcs}\n"
    )
