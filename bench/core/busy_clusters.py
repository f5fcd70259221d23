"""Busy clusters: 5,000 nodes in racks, and a gang or two on each of them.

Two VCs were promised somewhat less than half of the nodes each. VC a is full: half of the nodes are
its own, and a tenth of all gangs are opportunistic.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from extender.cells.model import OPPORTUNISTIC, MemberRequest, PlacedMember
from extender.cells.views.listings import run_to_end
from extender.cluster.cluster import Cluster
from extender.cluster.journal import NoJournal
from kube.read.nodes import KubeNode
from policy.placement import Placement
from policy.submission import GangKey, LeafType, NodeName, PodUid, VcName
from policy.topology import CellTypeName, ChainName

NODES: Final = 5000
RACK: Final = 16
_SHARED: Final = 2400
"""Nodes with two gangs; the others have one."""
_LEAVES: Final = 8
_RACK_LABEL: Final = "topology.kubernetes.io/rack"
_NODE_LABEL: Final = "kubernetes.io/hostname"
_ZONE_LABEL: Final = "topology.kubernetes.io/zone"
_RESOURCE: Final = "nvidia.com/gpu"
PRODUCT: Final = "nvidia.com/gpu.product"
SPARE: Final = range(4800, 4960)
"""Nodes of ten racks on which all gangs can be opportunistic."""
_MANY: Final = 200


def fill() -> Cluster:
    """Use every node: about half of them by two gangs."""
    return recover(new_cluster(document(share=9)), spare=())


def fill_with_spare_racks() -> Cluster:
    """Promise ten racks to a third VC; only opportunistic gangs use them."""
    return recover(new_cluster(document(share=9, racks=len(SPARE) // RACK)), spare=SPARE)


def fill_varied() -> Cluster:
    """Use nodes of different sizes in racks of different sizes."""
    return recover(new_cluster(document(share=9), is_varied=True), spare=(), is_varied=True)


def new_cluster(text: str, *, is_varied: bool = False) -> Cluster:
    """Build the cells of all nodes; no gang runs yet."""
    cluster = Cluster(lease_seconds=3600, journal=NoJournal())
    for index in range(NODES):
        cluster.observe_node(node(index, is_varied=is_varied))
    cluster.use_document(text)
    return cluster


def recover(cluster: Cluster, *, spare: range | tuple[()], is_varied: bool = False) -> Cluster:
    """Let gangs run everywhere."""
    running = [
        member
        for index in range(NODES)
        for member in _members(
            index, is_spare=index in spare, leaves=_leaves(index, is_varied=is_varied)
        )
    ]
    run_to_end(cluster.recover_stepwise(running, released=[], now=0.0))
    return cluster


def _members(index: int, *, is_spare: bool, leaves: int) -> Iterator[PlacedMember]:
    sizes = [leaves // 2, leaves // 2] if index < _SHARED else [leaves]
    for part, size in enumerate(sizes):
        first = part * size
        asked = request(f"{index}-{part}", (size,), vc="a" if index % 2 else "b")
        priority = OPPORTUNISTIC if is_spare or index % 10 == 0 else 1
        yield PlacedMember(
            request=replace(asked, priority=priority),
            placement=Placement(
                node=node(index).name,
                leaf_cells=tuple(range(first, first + size)),
                chain=ChainName("A100"),
                vc_cell_type=CellTypeName(_NODE_LABEL) if priority > 0 else None,
            ),
        )


def request(name: str, sizes: tuple[int, ...], *, vc: str) -> MemberRequest:
    """The request of the first member of a gang."""
    return MemberRequest(
        member=PodUid(f"pod-{name}"),
        gang=GangKey("bench", name),
        leaf_count=sizes[0],
        gang_leaf_counts=sizes,
        vc=VcName(vc),
    )


def node(index: int, *, is_varied: bool = False) -> KubeNode:
    """A healthy node."""
    leaves = _leaves(index, is_varied=is_varied)
    rack = index * index // NODES // 10 if is_varied else index // RACK
    labels = {
        _RACK_LABEL: f"rack-{rack:04}",
        _ZONE_LABEL: "ab"[index % 2],
        PRODUCT: "A100",
    }
    return KubeNode(
        name=NodeName(f"node-{index:06}"),
        is_healthy=True,
        labels=labels,
        leaf_counts={_RESOURCE: leaves},
        usable_count=leaves,
        leaf_type=LeafType("A100"),
    )


def _leaves(index: int, *, is_varied: bool) -> int:
    return (8, 8, 4, 2)[(index * 7919 >> 3) % 4] if is_varied else _LEAVES


def document(*, share: int, racks: int = 0) -> str:
    """Each of two VCs was promised so many twentieths of the nodes, and a third one some racks."""
    vcs = {name: {_NODE_LABEL: NODES * share // 20} for name in "ab"}
    return _document(["{"], {**vcs, "c": {_RACK_LABEL: racks}} if racks else vcs)


def document_of_many_vcs(*, is_ambiguous: bool) -> str:
    """200 VCs were promised more than there is, of every level; perhaps of either zone."""
    vcs = {
        f"vc-{index:03}": {
            _RACK_LABEL: 2 + index % 3,
            _NODE_LABEL: 30 + index % 7,
            _RESOURCE: 9 + index,
        }
        for index in range(_MANY)
    }
    entries = [f"{{nodeSelector: {{{_ZONE_LABEL}: a}}, ", "{"] if is_ambiguous else ["{"]
    return _document(entries, vcs)


def _document(entries: list[str], vcs: dict[str, dict[str, int]]) -> str:
    promises = "".join(
        f"\n  {name}:\n    virtualCells:"
        + "".join(
            f"\n    - {{leafType: A100, level: {level}, cellNumber: {count}}}"
            for level, count in of_vc.items()
        )
        for name, of_vc in vcs.items()
    )
    levels = f"levels: [{_RACK_LABEL}, {_NODE_LABEL}], leafResource: {_RESOURCE}"
    return "apiVersion: cellgate.io/v1\nkind: Cluster\nnodeTopology:\n" + (
        "".join(f"- {entry}{levels}, leafTypeLabel: {PRODUCT}}}\n" for entry in entries)
        + f"virtualClusters:{promises}\n"
    )
