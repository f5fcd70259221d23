"""Physical cells as a mutable tree: what the engine works on. Private to `extender.cells`.

One tree for each chain. Above its top-level cells stands a *root*, which is no cell: it only makes
"the whole chain" look like one more level. `order` numbers the cells of a chain from parent to
child as the topology lists them; it is the tie-break everywhere. Numbers leave gaps, so that cells
which join later find theirs between those of their neighbours, as if they had always been there.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from policy.submission import LeafType, NodeName
from policy.topology import CellAddress, Chain, ChainName, Level, PhysicalCell, PinnedCellId

_GAP = 1 << 80
"""Between the orders of two cells of a new tree."""
_STRIDE = 1 << 40
"""After the cells before it, for one that joins: neighbours often join one after the other."""

if TYPE_CHECKING:
    from extender.cells.state.placed_gangs import PlacedGang
    from extender.cells.state.vcs import Claim


@dataclass(slots=True, eq=False)
class Cell:
    """One physical cell; `holder`, `reserver` and `is_bad` mean something on leaves only."""

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
    """Leaves below that are healthy and that nobody holds or has reserved."""
    bad: int = 0
    """Leaves below that are bad."""
    claims_below: int = 0
    """Preassigned cells that are mapped strictly below."""
    claim: "Claim | None" = None
    """The preassigned cell that is mapped to exactly this cell."""
    holder: "PlacedGang | None" = None
    reserver: "PlacedGang | None" = None
    is_bad: bool = False

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
        """The cell of that level around this one."""
        cell = self
        while cell.level < level and cell.parent is not None:
            cell = cell.parent
        return cell

    def enclosing_claim(self) -> "Claim | None":
        """The mapped preassigned cell that this cell lies in, if any."""
        for cell in self.upwards():
            if cell.claim is not None:
                return cell.claim
        return None

    def is_unclaimed(self) -> bool:
        """True if no preassigned cell is mapped to it, around it or inside it."""
        return self.claims_below == 0 and self.enclosing_claim() is None


class ChainTree:
    """The physical cells of one chain."""

    def __init__(
        self, *, name: ChainName, leaf_type: LeafType | None, levels: tuple[Level, ...]
    ) -> None:
        self.name = name
        self.is_named = True
        """False where the name is our own and no topology has it."""
        self.leaf_type = leaf_type
        self.levels = levels
        self.top_level = len(levels)
        self.node_level = next((rung.level for rung in levels if rung.is_node), self.top_level)
        self.cells: dict[int, Cell] = {}
        """All cells by their order, the root included."""
        self._next_order = 0
        self._step = _GAP
        self._child_counts = [Counter[int]() for _ in range(self.top_level + 2)]
        """How many cells of each level have so many children."""
        self.by_address: dict[CellAddress, Cell] = {}
        self.by_node: dict[NodeName, Cell] = {}
        self.root = self._new(CellAddress(""), self.top_level + 1, None)

    def level_of(self, cell_type: str) -> int | None:
        """The level of a cell type, if the chain has it."""
        return next((rung.level for rung in self.levels if rung.cell_type == cell_type), None)

    def is_uniform(self) -> bool:
        """True if all cells of a level have equally many children."""
        return all(
            counts.keys() <= {rung.child_count}
            for rung, counts in zip(self.levels[1:], self._child_counts[2:], strict=False)
        )

    def add(self, spec: PhysicalCell) -> Cell:
        """Add a top-level cell with all that is below it; its leaves are bad until observed."""
        top = self._grow(spec, self.root)
        self._count(top, self.root, 1)
        return top

    def insert(self, spec: PhysicalCell, parent: Cell, *, after: Cell | None) -> Cell | None:
        """Add a cell to the children of another one, the first or after one of them.

        None, and nothing changed, if no order is left there.
        """
        index = parent.children.index(after) + 1 if after else 0
        low, high = _last(after).order if after else parent.order, _next_order(parent, index)
        start = low + (min((high - low) // 2, _STRIDE) if high is not None else _GAP)
        if high is not None and start + _size(spec) > high:
            return None
        last, self._next_order, self._step = self._next_order, start, 1
        cell = self._grow(spec, parent)
        self._next_order, self._step = max(last, self._next_order + _GAP), _GAP
        parent.children.insert(index, parent.children.pop())
        self._count(cell, parent, 1)
        return cell

    def remove(self, cell: Cell) -> None:
        """Take a cell out with all that is below it."""
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

    def _count(self, cell: Cell, parent: Cell, sign: int) -> None:
        """A cell joined those below its parent, or left them: the sums above follow."""
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

    def _grow(self, spec: PhysicalCell, parent: Cell) -> Cell:
        cell = self._new(spec.address, spec.level, parent)
        cell.node, cell.device, cell.pinned = spec.node, spec.device, spec.pinned
        parent.children.append(cell)
        self.by_address[spec.address] = cell
        if spec.level == self.node_level and spec.node is not None:
            self.by_node[spec.node] = cell
        if cell.is_leaf:
            cell.leaf_count, cell.bad, cell.is_bad = 1, 1, True
        for child in spec.children:
            grown = self._grow(child, cell)
            cell.leaf_count += grown.leaf_count
            cell.bad += grown.leaf_count
        self._count_children(cell, 1)
        return cell

    def _new(self, address: CellAddress, level: int, parent: Cell | None) -> Cell:
        cell = self.cells[self._next_order] = Cell(address, level, self._next_order, self, parent)
        self._next_order += self._step
        return cell


def _size(spec: PhysicalCell) -> int:
    return 1 + sum(map(_size, spec.children))


def _last(cell: Cell) -> Cell:
    """The last cell in order of those below, or itself."""
    while cell.children:
        cell = cell.children[-1]
    return cell


def _next_order(parent: Cell, index: int) -> int | None:
    """The order of the cell that comes after all that is before a place among children."""
    if index < len(parent.children):
        return parent.children[index].order
    if parent.parent is None:
        return None
    return _next_order(parent.parent, parent.parent.children.index(parent) + 1)


def build_tree(chain: Chain) -> ChainTree:
    """Build the tree of a chain, all of it bad and free."""
    tree = ChainTree(name=chain.name, leaf_type=chain.leaf_type, levels=chain.levels)
    for cell in chain.cells:
        tree.add(cell)
    return tree
