"""Nodes join, change their health or leave.

With a topology, cells stay when their node leaves: their leaves become bad, and gangs keep their
slots. (A topology that is derived from live nodes is replaced afterwards, see `node_changes`.)
Without a topology every node is a top-level cell of a chain named after its leaf type, and nothing
is promised. Then a node that leaves is removed: members on it keep slots without leaves until they
end or their lease expires, and slots that no member has taken are given up.
"""

from collections.abc import Sequence

from extender.cells.model import NodeCell
from extender.cells.observe.bound_pods import PodObserver
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.cell_changes import add_top, remove_cell
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.state.tree import Cell, ChainTree
from policy.submission import LeafType, NodeName
from policy.topology import CellAddress, CellTypeName, ChainName, Level, PhysicalCell


class NodeObserver:
    """Keeps the cells in step with the observed nodes."""

    def __init__(self, table: AllocationTable, pod_observer: PodObserver) -> None:
        self._table = table
        self._pod_observer = pod_observer
        self.known: dict[NodeName, NodeCell] = {}
        self._short: dict[NodeName, None] = {}
        """Nodes that offer fewer devices than the topology has leaves; used leaves stay good."""
        self._read = 0

    def observe(self, node: NodeCell) -> None:
        """Take in a node that joined or changed."""
        before = self.known.get(node.name)
        if before == node:
            return
        self.known[node.name] = node
        if self._table.is_open and (
            before is None
            or (before.leaf_type, before.leaf_count) != (node.leaf_type, node.leaf_count)
        ):
            self._remove(node.name)
            self._add(node)
            self._pod_observer.count_on(node.name)
        self._mark(node)

    def mark(self, name: NodeName) -> None:
        """Set the health of new cells of a node, if the node is known."""
        if name in self.known:
            self._mark(self.known[name])

    def mark_short(self) -> None:
        """Choose the bad leaves again on nodes that offer too few devices and whose use changed."""
        changed = self._table.changes.since(self._read) if self._short else ()
        for node in list(self._short) if changed is None else self._short_among(changed):
            self._mark(self.known[node])
        self._read = self._table.changes.now

    def _short_among(self, changed: "Sequence[Cell | PlacedGang]") -> dict[NodeName, None]:
        cells = (cell for cell in changed if isinstance(cell, Cell) and cell.node is not None)
        return {cell.node: None for cell in cells if cell.node in self._short}

    def forget(self, name: NodeName) -> None:
        """Take in that a node left."""
        if self.known.pop(name, None) is None:
            return
        self._short.pop(name, None)
        if self._table.is_open:
            self._remove(name)
            return
        for cell in self._table.nodes(name):
            self._table.quarantine(cell, is_quarantined=False)
            self._table.mark(list(cell.leaves()), is_bad=True)

    def _mark(self, node: NodeCell) -> None:
        self._short.pop(node.name, None)
        for cell in self._table.nodes(node.name):
            self._table.quarantine(cell, is_quarantined=node.is_quarantined)
            leaves = list(cell.leaves())
            bad = dict.fromkeys(
                leaf for leaf in leaves if not node.is_healthy or leaf.device in node.bad_leaf_cells
            )
            good = [leaf for leaf in leaves if leaf not in bad]
            bad |= dict.fromkeys(self._not_offered(node, good))
            self._table.mark(list(bad), is_bad=True)
            self._table.mark([leaf for leaf in leaves if leaf not in bad], is_bad=False)

    def _not_offered(self, node: NodeCell, leaves: list[Cell]) -> list[Cell]:
        """Leaves beyond the number of devices that the node offers, unused ones first.

        A node reports the devices of one resource. This says nothing about a node of several
        chains, and a node that reports none may have leaf cells of another kind (CPUs in HiveD).
        """
        if node.leaf_count < 1 or len(self._table.nodes(node.name)) > 1:
            return []
        surplus = max(0, len(leaves) - node.leaf_count)
        if surplus:
            self._short[node.name] = None
        unheld_last = sorted(
            leaves,
            key=lambda leaf: (leaf.holder is None, leaf.reserver is None, leaf.order),
        )
        return unheld_last[len(leaves) - surplus :]

    def _add(self, node: NodeCell) -> None:
        tree = self._table.trees.get(_chain_name(node.leaf_type))
        if tree is None:
            tree = self._table.add_tree(_new_tree(node))
        add_top(self._table, tree, _spec(node))

    def _remove(self, name: NodeName) -> None:
        for cell in self._table.nodes(name):
            self._pod_observer.vacate_node(cell)
            remove_cell(self._table, cell)


def _chain_name(leaf_type: LeafType | None) -> ChainName:
    return ChainName(f"nodes of {leaf_type}" if leaf_type else "nodes")


def _new_tree(node: NodeCell) -> ChainTree:
    leaf = Level(
        level=1,
        cell_type=CellTypeName(node.leaf_type or "leaf"),
        child_count=0,
        leaf_count=1,
        is_node=False,
    )
    whole = Level(
        level=2,
        cell_type=CellTypeName("node"),
        child_count=node.leaf_count,
        leaf_count=node.leaf_count,
        is_node=True,
    )
    tree = ChainTree(
        name=_chain_name(node.leaf_type), leaf_type=node.leaf_type, levels=(leaf, whole)
    )
    tree.is_named = False
    return tree


def _spec(node: NodeCell) -> PhysicalCell:
    return PhysicalCell(
        address=CellAddress(node.name),
        level=2,
        node=node.name,
        children=tuple(
            PhysicalCell(
                address=CellAddress(f"{node.name}/{index}"), level=1, node=node.name, device=index
            )
            for index in range(node.leaf_count)
        ),
    )
