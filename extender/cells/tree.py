"""Physical cells as a mutable tree: what the engine works on. Private to `extender.cells`.

One tree for each chain. Above its top-level cells stands a *root*, which is no cell: it only makes
"the whole chain" look like one more level. `order` numbers the cells of a chain from parent to
child as the topology lists them; it is the tie-break everywhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from policy.submission import LeafType, NodeName
from policy.topology import CellAddress, Chain, ChainName, Level, PhysicalCell, PinnedCellId

if TYPE_CHECKING:
    from extender.cells.gangs import Gang
    from extender.cells.vcs import Claim


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
    holder: "Gang | None" = None
    reserver: "Gang | None" = None
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
        self.by_address: dict[CellAddress, Cell] = {}
        self.by_node: dict[NodeName, Cell] = {}
        self.root = self._new(CellAddress(""), self.top_level + 1, None)

    def level_of(self, cell_type: str) -> int | None:
        """The level of a cell type, if the chain has it."""
        return next((rung.level for rung in self.levels if rung.cell_type == cell_type), None)

    def is_uniform(self) -> bool:
        """True if all cells of a level have equally many children."""
        return all(
            len(cell.children) == self.levels[cell.level - 1].child_count
            for cell in self.cells.values()
            if 1 < cell.level <= self.top_level
        )

    def add(self, spec: PhysicalCell) -> Cell:
        """Add a top-level cell with all that is below it; its leaves are bad until observed."""
        top = self._grow(spec, self.root)
        self.root.leaf_count += top.leaf_count
        self.root.bad += top.leaf_count
        return top

    def remove(self, top: Cell) -> None:
        """Take a top-level cell out with all that is below it."""
        self.root.children.remove(top)
        self.root.leaf_count -= top.leaf_count
        self.root.idle -= top.idle
        self.root.bad -= top.bad
        gone = [top]
        for cell in gone:
            gone += cell.children
            del self.by_address[cell.address]
            del self.cells[cell.order]
            if cell.level == self.node_level and cell.node is not None:
                del self.by_node[cell.node]

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
        return cell

    def _new(self, address: CellAddress, level: int, parent: Cell | None) -> Cell:
        cell = self.cells[self._next_order] = Cell(address, level, self._next_order, self, parent)
        self._next_order += 1
        return cell


def build_tree(chain: Chain) -> ChainTree:
    """Build the tree of a chain, all of it bad and free."""
    tree = ChainTree(name=chain.name, leaf_type=chain.leaf_type, levels=chain.levels)
    for cell in chain.cells:
        tree.add(cell)
    return tree
