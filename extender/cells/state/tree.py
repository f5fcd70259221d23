"""Physical cells of one chain as a mutable tree.

Above the top-level cells of a chain is a *root*, which is not a cell: it makes the whole chain look
like one more level. `order` numbers the cells of a chain depth-first, parents before children, as
the topology lists them, and breaks all ties. The numbers leave gaps, so that a cell that joins
later gets a number between those of its neighbours, as if it had been there from the start.
"""

from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from policy.submission import LeafType, NodeName
from policy.topology import CellAddress, Chain, ChainName, Level, PhysicalCell, PinnedCellId

_GAP = 1 << 80
"""Distance between the orders of two cells of a new tree."""
_STRIDE = 1 << 40
"""Largest distance of a joining cell from its predecessor: neighbours often join in sequence."""

if TYPE_CHECKING:
    from extender.cells.state.placed_gangs import PlacedGang
    from extender.cells.state.vcs import Claim


@dataclass(slots=True, eq=False)
class Cell:
    """One physical cell; `holder`, `reserver` and `is_bad` are used on leaves only."""

    address: CellAddress
    level: int
    order: int
    chain: "ChainTree"
    parent: "Cell | None"
    node: NodeName | None = None
    device: int | None = None
    pinned: PinnedCellId | None = None
    children: "list[Cell]" = field(default_factory=list)
    leaf_count: int = 0
    idle: int = 0
    """Number of leaves below that are healthy and that no gang holds or reserves."""
    bad: int = 0
    """Number of leaves below that are bad."""
    claims_below: int = 0
    """Number of preassigned cells that are mapped strictly below."""
    claim: "Claim | None" = None
    """The preassigned cell that is mapped to exactly this cell."""
    holder: "PlacedGang | None" = None
    """The gang that has this leaf now."""
    reserver: "PlacedGang | None" = None
    """The gang that gets this leaf when its victim, the holder, has ended."""
    is_bad: bool = False
    is_quarantined: bool = False
    """Whether this is a node that is bad because it is in quarantine."""

    @property
    def is_leaf(self) -> bool:
        return self.level == 1

    def leaves(self) -> "Iterator[Cell]":
        """All leaves below, in order."""
        if self.level == 1:
            yield self
        for child in self.children:
            yield from child.leaves()

    def at_level(self, level: int) -> "Iterator[Cell]":
        """All cells of a level below or at this one, in order."""
        if self.level == level:
            yield self
        elif self.level > level:
            for child in self.children:
                yield from child.at_level(level)

    def upwards(self) -> "Iterator[Cell]":
        """This cell and its ancestors, without the root."""
        cell: Cell | None = self
        while cell is not None and cell.parent is not None:
            yield cell
            cell = cell.parent

    def ancestor(self, level: int) -> "Cell":
        """The cell of a level that contains this one."""
        cell = self
        while cell.level < level and cell.parent is not None:
            cell = cell.parent
        return cell

    def enclosing_claim(self) -> "Claim | None":
        """The preassigned cell that is mapped to this cell or to an ancestor, if any."""
        for cell in self.upwards():
            if cell.claim is not None:
                return cell.claim
        return None

    def is_unclaimed(self) -> bool:
        """True if no preassigned cell is mapped to this cell, an ancestor or a descendant."""
        return self.claims_below == 0 and self.enclosing_claim() is None


class ChainTree:
    """The physical cells of one chain."""

    def __init__(
        self, *, name: ChainName, leaf_type: LeafType | None, levels: tuple[Level, ...]
    ) -> None:
        self.name = name
        self.is_named = True
        """False if the engine made up the name because there is no topology."""
        self.leaf_type = leaf_type
        self.levels = levels
        self.top_level = len(levels)
        self.node_level = next((rung.level for rung in levels if rung.is_node), self.top_level)
        self.cells: dict[int, Cell] = {}
        """All cells by their order, the root included."""
        self._next_order = 0
        self._step = _GAP
        self._child_counts = [Counter[int]() for _ in range(self.top_level + 2)]
        """By level: number of children, and how many cells have this number."""
        self.by_address: dict[CellAddress, Cell] = {}
        self.by_node: dict[NodeName, Cell] = {}
        self.pinned: dict[PinnedCellId, Cell] = {}
        """Pinned cells, as the topology lists them; such a topology is not changed in place."""
        self.root = self._new(CellAddress(""), self.top_level + 1, None)

    def level_of(self, cell_type: str) -> int | None:
        """The level of a cell type, if the chain has it."""
        return next((rung.level for rung in self.levels if rung.cell_type == cell_type), None)

    def idle_capacity(self, level: int, size: int) -> int:
        """Number of members of a size that a cell of a level holds if it is idle as a whole."""
        inside = self.levels[min(level, self.node_level) - 1].leaf_count
        return self.levels[level - 1].leaf_count // inside * (inside // size)

    def is_uniform(self) -> bool:
        """True if all cells of a level have the same number of children."""
        return all(
            counts.keys() <= {rung.child_count}
            for rung, counts in zip(self.levels[1:], self._child_counts[2:], strict=False)
        )

    def add(self, spec: PhysicalCell) -> Cell:
        """Add a top-level cell with its descendants; its leaves are bad until observed."""
        top = self._add_subtree(spec, self.root)
        self._count(top, self.root, 1)
        return top

    def add_stepwise(self, spec: PhysicalCell) -> Generator[None, None, None]:
        """Like `add`; yields before each node."""
        top = yield from self._add_in_steps(spec, self.root)
        self._count(top, self.root, 1)

    def insert(self, spec: PhysicalCell, parent: Cell, *, after: Cell | None) -> Cell | None:
        """Add a cell to the children of a parent: after a sibling, or as the first child.

        Returns None and changes nothing if no order is left between its neighbours.
        """
        index = parent.children.index(after) + 1 if after else 0
        low, high = _last(after).order if after else parent.order, _next_order(parent, index)
        start = low + (min((high - low) // 2, _STRIDE) if high is not None else _GAP)
        if high is not None and start + _size(spec) > high:
            return None
        last, self._next_order, self._step = self._next_order, start, 1
        cell = self._add_subtree(spec, parent)
        self._next_order, self._step = max(last, self._next_order + _GAP), _GAP
        parent.children.insert(index, parent.children.pop())
        self._count(cell, parent, 1)
        return cell

    def remove(self, cell: Cell) -> None:
        """Remove a cell with its descendants."""
        assert cell.parent is not None
        cell.parent.children.remove(cell)
        self._count(cell, cell.parent, -1)
        gone = [cell]
        for each in gone:
            gone += each.children
            del self.by_address[each.address]
            del self.cells[each.order]
            if each.level == self.node_level and each.node is not None:
                del self.by_node[each.node]
            self._count_children(each, -1)

    def put_back(self, cell: Cell, index: int) -> None:
        """Add a cell again that was removed, with its descendants, at its former place."""
        assert cell.parent is not None
        cell.parent.children.insert(index, cell)
        self._count(cell, cell.parent, 1)
        back = [cell]
        for each in back:
            back += each.children
            self.by_address[each.address] = each
            self.cells[each.order] = each
            if each.level == self.node_level and each.node is not None:
                self.by_node[each.node] = each
            self._count_children(each, 1)

    def _count(self, cell: Cell, parent: Cell, sign: int) -> None:
        """Update the sums of all ancestors after a cell joined its parent (1) or left it (-1)."""
        if parent is not self.root:
            self._child_counts[parent.level][len(parent.children) - sign] -= 1
            self._child_counts[parent.level] = +self._child_counts[parent.level]
            self._count_children(parent, 1)
        above: Cell | None = parent
        while above is not None:
            above.leaf_count += sign * cell.leaf_count
            above.idle += sign * cell.idle
            above.bad += sign * cell.bad
            above = above.parent

    def _count_children(self, cell: Cell, sign: int) -> None:
        counts = self._child_counts[cell.level]
        counts[len(cell.children)] += sign
        if not counts[len(cell.children)]:
            del counts[len(cell.children)]

    def _add_in_steps(self, spec: PhysicalCell, parent: Cell) -> Generator[None, None, Cell]:
        if spec.level <= self.node_level:
            yield
            return self._add_subtree(spec, parent)
        cell = self._add_cell(spec, parent)
        for child in spec.children:
            added = yield from self._add_in_steps(child, cell)
            _include(cell, added)
        self._count_children(cell, 1)
        return cell

    def _add_subtree(self, spec: PhysicalCell, parent: Cell) -> Cell:
        cell = self._add_cell(spec, parent)
        for child in spec.children:
            _include(cell, self._add_subtree(child, cell))
        self._count_children(cell, 1)
        return cell

    def _add_cell(self, spec: PhysicalCell, parent: Cell) -> Cell:
        cell = self._new(spec.address, spec.level, parent)
        cell.node, cell.device, cell.pinned = spec.node, spec.device, spec.pinned
        parent.children.append(cell)
        self.by_address[spec.address] = cell
        if spec.level == self.node_level and spec.node is not None:
            self.by_node[spec.node] = cell
        if spec.pinned is not None:
            self.pinned[spec.pinned] = cell
        if cell.is_leaf:
            cell.leaf_count, cell.bad, cell.is_bad = 1, 1, True
        return cell

    def _new(self, address: CellAddress, level: int, parent: Cell | None) -> Cell:
        cell = self.cells[self._next_order] = Cell(address, level, self._next_order, self, parent)
        self._next_order += self._step
        return cell


def _include(cell: Cell, added: Cell) -> None:
    """Count the leaves of a new child, which are all bad."""
    cell.leaf_count += added.leaf_count
    cell.bad += added.leaf_count


def _size(spec: PhysicalCell) -> int:
    return 1 + sum(map(_size, spec.children))


def _last(cell: Cell) -> Cell:
    """The descendant with the highest order, or the cell itself if it has none."""
    while cell.children:
        cell = cell.children[-1]
    return cell


def _next_order(parent: Cell, index: int) -> int | None:
    """The order of the cell that follows the first `index` children of a parent; None if none."""
    if index < len(parent.children):
        return parent.children[index].order
    if parent.parent is None:
        return None
    return _next_order(parent.parent, parent.parent.children.index(parent) + 1)


def build_tree_stepwise(chain: Chain) -> Generator[None, None, ChainTree]:
    """Build the tree of a chain, node by node; all cells are bad and free."""
    tree = ChainTree(name=chain.name, leaf_type=chain.leaf_type, levels=chain.levels)
    for cell in chain.cells:
        yield from tree.add_stepwise(cell)
    return tree
