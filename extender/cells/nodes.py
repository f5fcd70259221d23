"""The leaf cells of all nodes, and which of them are free.

Nodes are indexed by how many leaf cells they have free, so that the tightest node that fits is
found without looking at all of them. A node that is not there (not yet, or no longer) but whose
leaf cells somebody has is remembered as absent: when it comes, nothing is handed out twice.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import count, islice

from extender.cells.model import NodeCell, Placement
from policy.submission import LeafType, NodeName, PodUid


@dataclass(slots=True, eq=False)
class _Node:
    cell: NodeCell
    holders: dict[int, PodUid | None] = field(default_factory=dict)
    """Leaf cell → member that has it; None: held for a member of a gang that has not asked yet."""

    @property
    def is_absent(self) -> bool:
        return self.cell.leaf_count == 0

    @property
    def free_count(self) -> int:
        return max(0, self.cell.leaf_count - len(self.holders)) if self.cell.is_healthy else 0


class NodeCells:
    """All nodes, ordered by free leaf cells."""

    def __init__(self) -> None:
        self._nodes: dict[NodeName, _Node] = {}
        self._by_free: dict[int, list[NodeName]] = {}

    def __iter__(self) -> Iterator[NodeName]:
        return iter(sorted(self._nodes))

    def cell(self, name: NodeName) -> NodeCell:
        """The node as it was last observed."""
        return self._nodes[name].cell

    def holders(self, name: NodeName) -> dict[int, PodUid | None]:
        """Who has which leaf cell of a node, in the order of the leaf cells."""
        return dict(sorted(self._node(name).holders.items()))

    def put(self, cell: NodeCell) -> None:
        """Add a node, or take note of its change; what is held stays held."""
        known = self._nodes.get(cell.name)
        if known and known.cell == cell:
            return
        self._unlist(cell.name)
        self._nodes[cell.name] = _Node(cell, known.holders if known else {})
        self._list(cell.name)

    def drop(self, name: NodeName) -> None:
        """Forget a node that left the cluster, but not who has its leaf cells."""
        self._unlist(name)
        known = self._nodes.pop(name, None)
        if known and known.holders:
            self._node(name).holders = known.holders

    def tightest(
        self, leaf_count: int, *, leaf_type: LeafType | None, among: Collection[NodeName] | None
    ) -> NodeName | None:
        """Find the node with the fewest free leaf cells that still has `leaf_count` of them.

        None means any leaf type, any node.
        """
        for free in sorted(free for free in self._by_free if free >= leaf_count):
            for name in self._by_free[free]:
                is_wanted = among is None or name in among
                if is_wanted and leaf_type in (None, self._nodes[name].cell.leaf_type):
                    return name
        return None

    def lowest_leaves(self, name: NodeName, leaf_count: int) -> Placement:
        """The lowest leaf cells that nobody has, beyond those the node has if it is overused."""
        holders = self._node(name).holders
        leaves = islice((leaf for leaf in count() if leaf not in holders), leaf_count)
        return Placement(node=name, leaf_cells=tuple(leaves))

    def hold(self, placement: Placement, member: PodUid | None) -> None:
        """Give leaf cells to a member, or (None) keep them for one that has not asked yet."""
        self._node(placement.node)
        self._unlist(placement.node)
        self._nodes[placement.node].holders.update(dict.fromkeys(placement.leaf_cells, member))
        self._list(placement.node)

    def let_go(self, placement: Placement) -> None:
        """Free the leaf cells of a placement."""
        node = self._node(placement.node)
        self._unlist(placement.node)
        for leaf in placement.leaf_cells:
            node.holders.pop(leaf, None)
        self._list(placement.node)
        if node.is_absent:
            self.drop(placement.node)

    def _node(self, name: NodeName) -> _Node:
        """The node, or a place to remember who has its leaf cells while it is absent."""
        if name not in self._nodes:
            absent = NodeCell(name=name, leaf_type=None, leaf_count=0, is_healthy=False)
            self._nodes[name] = _Node(absent)
            self._list(name)
        return self._nodes[name]

    def _list(self, name: NodeName) -> None:
        insort(self._by_free.setdefault(self._nodes[name].free_count, []), name)

    def _unlist(self, name: NodeName) -> None:
        if name not in self._nodes:
            return
        free = self._nodes[name].free_count
        names = self._by_free[free]
        del names[bisect_left(names, name)]
        if not names:
            del self._by_free[free]
