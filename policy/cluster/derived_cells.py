"""Live nodes into chains of cells, by their labels.

A node's path is the values of the level labels, then its own name: `zone-a/rack-1/node-7`, with its
devices below, `zone-a/rack-1/node-7/0`. Addresses depend on nothing else, so they stay the same
when other nodes come and go. Nodes of a chain may differ in their number of devices.

A chain is a leaf type within one entry of `nodeTopology`. The first entry's chains are called like
the leaf type, those of entry 1 `A100#1`: entries that are added below rename nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from policy.cluster.document import LiveNode
from policy.errors import Problem
from policy.submission import LeafType, NodeName
from policy.topology import CellAddress, CellTypeName, Chain, ChainName, Level, PhysicalCell
from policy.wording import count_of, join_path, listing, quote

UNLABELLED: Final = "-"
"""The place of nodes that lack a level's label, all together. No label has this value."""
UNKNOWN_TYPE: Final = LeafType("unknown")
MAX_DEVICES: Final = 1024
_SHOWN_NODES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRule:
    """One entry of `nodeTopology`."""

    selector: Mapping[str, str]
    levels: tuple[str, ...]
    """Label keys, coarsest first; the last is the node."""
    leaf_resource: str
    leaf_type_label: str

    def selects(self, node: LiveNode) -> bool:
        """Whether the node has all labels asked for."""
        return all(node.labels.get(key) == value for key, value in self.selector.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedCells:
    """The chains, and which entry each comes from."""

    rules: Sequence[NodeRule]
    chains: Mapping[ChainName, Chain]
    rule_of: Mapping[ChainName, int]
    warnings: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A node at its place in a chain."""

    path: tuple[str, ...]
    """Label values, then the node's name."""
    leaf_count: int


@dataclass(slots=True)
class _Notes:
    """Nodes that are not as they should be, by what is wrong with them."""

    nodes: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, path: str, what: str, *, node: NodeName) -> None:
        self.nodes.setdefault((path, what), []).append(node)

    def warnings(self) -> Iterator[Problem]:
        for (path, what), names in sorted(self.nodes.items()):
            shown = [quote(name) for name in names[:_SHOWN_NODES]]
            more = [f"{len(names) - len(shown)} more"] if len(names) > len(shown) else []
            told = f"{count_of(len(names), 'node')} {what}: {listing([*shown, *more])}"
            yield Problem(path, told)


def build_cells(rules: Sequence[NodeRule], nodes: Iterable[LiveNode]) -> DerivedCells:
    """Build the chains of these nodes, whatever order they come in."""
    placed: dict[tuple[int, LeafType], list[_Placed]] = {}
    notes = _Notes()
    by_name = {node.name: node for node in nodes}
    for name in sorted(by_name):
        for index, rule in _rules_for(by_name[name], rules):
            found = _place(by_name[name], rule=rule, index=index, notes=notes)
            if found is not None:
                leaf_type = _leaf_type(by_name[name], rule=rule, index=index, notes=notes)
                placed.setdefault((index, leaf_type), []).append(found)
    chains = {key: _chain(rules[key[0]], key, placed[key]) for key in sorted(placed)}
    return DerivedCells(
        rules=rules,
        chains={chain.name: chain for chain in chains.values()},
        rule_of={chain.name: index for (index, _), chain in chains.items()},
        warnings=tuple(notes.warnings()),
    )


def _rules_for(node: LiveNode, rules: Sequence[NodeRule]) -> Iterator[tuple[int, NodeRule]]:
    """Yield the first rule for each leaf resource of the node: no device counts twice."""
    resources: dict[str, None] = {}
    for index, rule in enumerate(rules):
        if rule.leaf_resource not in resources and rule.selects(node):
            resources[rule.leaf_resource] = None
            yield index, rule


def _place(node: LiveNode, *, rule: NodeRule, index: int, notes: _Notes) -> _Placed | None:
    """Find the node's place; None if it has no devices, which is nothing special."""
    count = node.leaf_counts.get(rule.leaf_resource, 0)
    resource = join_path(("nodeTopology", index, "leafResource"))
    if count <= 0:
        if rule.leaf_type_label in node.labels:
            what = f"of a leaf type, but without any {rule.leaf_resource}, left out"
            notes.add(resource, what, node=node.name)
        return None
    if count > MAX_DEVICES:
        what = f"with more than {MAX_DEVICES} {rule.leaf_resource}, left out"
        notes.add(resource, what, node=node.name)
        return None
    values = [
        _label(node, key, path=join_path(("nodeTopology", index, "levels", place)), notes=notes)
        for place, key in enumerate(rule.levels[:-1])
    ]
    return _Placed(path=(*values, node.name), leaf_count=count)


def _label(node: LiveNode, key: str, *, path: str, notes: _Notes) -> str:
    value = node.labels.get(key)
    if not value:
        notes.add(path, f"without the label {key}, placed in {quote(UNLABELLED)}", node=node.name)
    return value or UNLABELLED


def _leaf_type(node: LiveNode, *, rule: NodeRule, index: int, notes: _Notes) -> LeafType:
    value = node.labels.get(rule.leaf_type_label)
    if not value:
        path = join_path(("nodeTopology", index, "leafTypeLabel"))
        what = f"without the label {rule.leaf_type_label}, of leaf type {quote(UNKNOWN_TYPE)}"
        notes.add(path, what, node=node.name)
    return LeafType(value) if value else UNKNOWN_TYPE


def _chain(rule: NodeRule, key: tuple[int, LeafType], placed: list[_Placed]) -> Chain:
    index, leaf_type = key
    cells = _cells(sorted(placed, key=lambda node: node.path), depth=0, above="")
    return Chain(
        name=ChainName(f"{leaf_type}#{index}" if index else leaf_type),
        leaf_type=leaf_type,
        levels=_levels(rule, leaf_type, cells),
        cells=cells,
    )


def _cells(placed: list[_Placed], *, depth: int, above: str) -> tuple[PhysicalCell, ...]:
    """Build the cells of one level, from nodes in the order of their paths."""
    if depth == len(placed[0].path) - 1:
        return tuple(_node(node, above) for node in placed)
    level = len(placed[0].path) - depth + 1
    cells: list[PhysicalCell] = []
    for part, group in groupby(placed, key=lambda node: node.path[depth]):
        address = f"{above}{part}"
        children = _cells(list(group), depth=depth + 1, above=f"{address}/")
        cells.append(PhysicalCell(address=CellAddress(address), level=level, children=children))
    return tuple(cells)


def _node(placed: _Placed, above: str) -> PhysicalCell:
    node = NodeName(placed.path[-1])
    address = f"{above}{node}"
    leaves = tuple(
        PhysicalCell(address=CellAddress(f"{address}/{device}"), level=1, node=node, device=device)
        for device in range(placed.leaf_count)
    )
    return PhysicalCell(address=CellAddress(address), level=2, children=leaves, node=node)


def _levels(
    rule: NodeRule, leaf_type: LeafType, cells: tuple[PhysicalCell, ...]
) -> tuple[Level, ...]:
    """Describe each level by its largest cell."""
    most_children, most_leaves = [0] * (len(rule.levels) + 1), [0] * (len(rule.levels) + 1)
    for cell in cells:
        _measure(cell, most_children, most_leaves)
    types = [CellTypeName(leaf_type), *(CellTypeName(key) for key in reversed(rule.levels))]
    return tuple(
        Level(
            level=place + 1,
            cell_type=cell_type,
            child_count=most_children[place],
            leaf_count=most_leaves[place],
            is_node=place == 1,
        )
        for place, cell_type in enumerate(types)
    )


def _measure(cell: PhysicalCell, most_children: list[int], most_leaves: list[int]) -> int:
    """Note the most children and leaf cells by level; return the leaf cells of this one."""
    leaves = sum(_measure(child, most_children, most_leaves) for child in cell.children) or 1
    place = cell.level - 1
    most_children[place] = max(most_children[place], len(cell.children))
    most_leaves[place] = max(most_leaves[place], leaves)
    return leaves
