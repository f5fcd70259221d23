"""Builds worlds: from policy documents and nodes, with added hardware.

Added nodes are like the existing ones of their leaf type: the same devices and labels, but a name
and a rack of their own. New racks are as large as the existing ones. Promises are those of the
document, so that added nodes serve guaranteed gangs only as far as VCs were promised more cells
than there are, or the document promises them more.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from extender.cells.model import NodeCell
from policy.cluster.derived import DerivedClusterDocument
from policy.cluster.derived_cells import rules_for
from policy.cluster.document import LiveNode
from policy.errors import RequestError
from policy.policy import Policy
from policy.submission import LeafType, NodeName
from policy.topology import PhysicalCell, Topology
from policy.wording import listing, name, quote
from timemachine.model import World

HOSTNAME: Final = "kubernetes.io/hostname"
LEAF_TYPE_LABELS: Final = ("nvidia.com/gpu.product", "amd.com/gpu.product-name")
"""The labels that tell the leaf type of a node where no Cluster document does."""
_PREFIX: Final = "added"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedNodes:
    """Hardware that does not exist: so many nodes like those of a leaf type."""

    number: int
    leaf_type: LeafType


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltWorld:
    """A world, and what its admin should know about it."""

    world: World
    notes: tuple[str, ...] = ()
    """Promises that do not fit into the nodes, and nodes that are left out."""


def build_world(
    policy: Policy,
    nodes: Sequence[LiveNode] = (),
    *,
    title: str,
    added: Sequence[AddedNodes] = (),
) -> BuiltWorld:
    """Build the world of a policy; without a Cluster document gangs may use every node.

    A document that lists every cell needs no nodes; if some are given, only these exist. Raises
    RequestError for added nodes of a leaf type that no node has.
    """
    document, known = policy.cluster, list(nodes)
    for one in added:
        known += add_nodes(policy, known, one)
    if document is None:
        open_cells = [cell for node in known if (cell := _open_cell(node)).leaf_count]
        return BuiltWorld(world=World(title=title, policy=policy, topology=None, nodes=open_cells))
    built = document.build(known)
    cells = nodes_of(built.topology)
    if known:
        names = {node.name for node in known}
        cells = [cell for cell in cells if cell.name in names]
    world = World(title=title, policy=policy, topology=built.topology, nodes=cells)
    return BuiltWorld(world=world, notes=tuple(map(str, (*built.problems, *built.warnings))))


def add_nodes(policy: Policy, nodes: Sequence[LiveNode], added: AddedNodes) -> list[LiveNode]:
    """Return nodes like the existing ones of a leaf type."""
    document = policy.cluster
    if document is not None and not isinstance(document, DerivedClusterDocument):
        told = "the Cluster document lists every cell: add the nodes to a copy of it"
        raise RequestError.at("nodes", told)
    types = {node.name: leaf_type for node, leaf_type in _types(document, nodes)}
    alike = [node for node in nodes if types.get(node.name) == added.leaf_type]
    if not alike:
        known = listing([name(one) for one in sorted(set(types.values()))]) or "none"
        told = f"no node has leaf type {quote(added.leaf_type)}; the leaf types are {known}"
        raise RequestError.at("nodes", told)
    template = _most_common(alike)
    levels = _levels(document, template)
    return list(_copies(template, alike, added.number, levels=levels, taken=_names(nodes)))


def _types(
    document: DerivedClusterDocument | None, nodes: Sequence[LiveNode]
) -> Iterator[tuple[LiveNode, LeafType]]:
    for node in nodes:
        if document is None:
            keys: Sequence[str] = LEAF_TYPE_LABELS
        else:
            keys = [rule.leaf_type_label for _, rule in rules_for(node, document.node_topology)]
        found = next((node.labels[key] for key in keys if node.labels.get(key)), None)
        if found is not None:
            yield node, LeafType(found)


def _most_common(nodes: Sequence[LiveNode]) -> LiveNode:
    """Return a node with the devices that most nodes have, the last one by name."""
    shapes = Counter(tuple(sorted(node.leaf_counts.items())) for node in nodes)
    shape = max(shapes, key=lambda one: (shapes[one], one))
    alike = [node for node in nodes if tuple(sorted(node.leaf_counts.items())) == shape]
    return max(alike, key=lambda node: node.name)


def _levels(document: DerivedClusterDocument | None, node: LiveNode) -> list[str]:
    """Return the labels of the levels above a node, coarsest first."""
    if document is None:
        return []
    return next((list(rule.levels[:-1]) for _, rule in rules_for(node, document.node_topology)), [])


def _names(nodes: Sequence[LiveNode]) -> set[str]:
    return {node.name for node in nodes} | {one for node in nodes for one in node.labels.values()}


def _copies(
    template: LiveNode,
    alike: Sequence[LiveNode],
    number: int,
    *,
    levels: Sequence[str],
    taken: set[str],
) -> Iterator[LiveNode]:
    """Yield copies of a node, in new racks of the usual size."""
    rack_key = levels[-1] if levels and levels[-1] in template.labels else None
    per_rack = _usual_size(alike, rack_key) if rack_key else number
    free = (one for one in _numbered(_PREFIX) if one not in taken)
    racks = (one for one in _numbered(f"{_PREFIX}-rack") if one not in taken)
    rack = ""
    for index in range(number):
        own = next(free)
        labels = {**template.labels, HOSTNAME: own}
        if rack_key:
            rack = rack if index % per_rack else next(racks)
            labels[rack_key] = rack
        yield LiveNode(
            name=NodeName(own),
            labels=labels,
            leaf_counts=template.leaf_counts,
            cpu=template.cpu,
            memory=template.memory,
        )


def _numbered(prefix: str) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"{prefix}-{number}"


def _usual_size(nodes: Sequence[LiveNode], key: str) -> int:
    """Return how many nodes most racks have; of equally many racks, the larger size."""
    racks = Counter(node.labels[key] for node in nodes if key in node.labels)
    sizes = Counter(racks.values())
    return max(sizes, key=lambda size: (sizes[size], size))


def _open_cell(node: LiveNode) -> NodeCell:
    found = next((node.labels[key] for key in LEAF_TYPE_LABELS if node.labels.get(key)), None)
    leaf_count = sum(node.leaf_counts.values())
    leaf_type = None if found is None else LeafType(found)
    return NodeCell(name=node.name, leaf_type=leaf_type, leaf_count=leaf_count)


def nodes_of(topology: Topology) -> list[NodeCell]:
    """Return the nodes of a topology, each once, in the order of their cells."""
    found: dict[NodeName, tuple[LeafType, int]] = {}
    for chain in topology.chains.values():
        for cell in chain.cells:
            for node, leaf_count in _nodes_in(cell):
                leaf_type, before = found.get(node, (chain.leaf_type, 0))
                found[node] = leaf_type, before + leaf_count
    return [
        NodeCell(name=node, leaf_type=leaf_type, leaf_count=leaf_count)
        for node, (leaf_type, leaf_count) in found.items()
    ]


def _nodes_in(cell: PhysicalCell) -> Iterator[tuple[NodeName, int]]:
    if cell.node is not None:
        yield cell.node, _count_leaves(cell)
        return
    for child in cell.children:
        yield from _nodes_in(child)


def _count_leaves(cell: PhysicalCell) -> int:
    return sum(map(_count_leaves, cell.children)) if cell.children else 1
