"""Exhaustive search: tries all mappings of a VC's unused cells and all packings, until one fits.

Packing unequal members is bin packing, and bad nodes or a short list of candidate nodes can make
the choice of physical cells matter, so no quick rule is exact. Interchangeable choices (bins with
equal room, free cells of equal shape) are tried once. The search has a budget. Where the budget
runs out, or more than `EXACT_BINS` bins have room, the result of the quick rules is final and the
budget is marked as cut.
"""

from extender.cells.budget import EXACT_BINS, EXACT_MEMBERS, OutOfBudgetError
from extender.cells.fit.demand import Demand, MemberBin
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.ranking import Ranking
from extender.cells.state.tree import Cell

_LARGEST_SHAPE = 256
"""Leaf cells of the largest cell whose shape is computed; larger cells count as all different."""
_NODES_PER_STEP = 8
"""Nodes that can be checked for cells to map in the time of one step."""
_STEPS_PER_MAPPING = 4
"""Steps that mapping and unmapping one cell costs."""


class _Search:
    def __init__(self, table: AllocationTable, ranking: Ranking, demand: Demand) -> None:
        self._table = table
        self._demand = demand
        self._rooms = {bin_: ranking.room(bin_) for bin_ in _in_order(ranking, demand.sizes[-1])}
        self._room = sum(self._rooms.values())
        # The asking member goes first, since it has the fewest allowed nodes.
        rest = list(demand.sizes)
        rest.remove(demand.first_size)
        self._sizes = (demand.first_size, *rest)
        self._left = sum(self._sizes)
        self._shapes = _Shapes(demand)
        self._budget = demand.budget.exact()
        self._most = self._budget.left

    def run(self) -> list[MemberBin] | None:
        found = self._place(0, None)
        if found is None:
            return None
        first, rest = found[0], list(found[1:])
        # Restore the order of the demand's sizes.
        return [
            *rest[: (at := self._demand.sizes.index(self._demand.first_size))],
            first,
            *rest[at:],
        ]

    def steps(self) -> int:
        """Number of steps that were taken."""
        return self._most - max(0, self._budget.left)

    def _place(self, index: int, previous: Cell | None) -> list[MemberBin] | None:
        if index == len(self._sizes):
            return []
        self._budget.spend()
        if not self._has_enough():
            return None
        return self._in_known_bins(index, previous) or self._in_newly_mapped_cells(index)

    def _has_enough(self) -> bool:
        """Cheap bound: the room of known bins and unused cells covers the remaining members."""
        demand, room = self._demand, self._room
        if demand.vc is not None and demand.pinned is None:
            tree = self._table.trees[demand.chain]
            for level in demand.vc.unused_levels(demand.chain):
                leaves = tree.levels[level - 1].leaf_count
                room += leaves * demand.vc.unused(demand.chain, level)
        return room >= self._left

    def _allows(self, index: int, bin_: Cell) -> bool:
        return (self._demand.allowed if index else self._demand.allowed_first)(bin_)

    def _in_known_bins(self, index: int, previous: Cell | None) -> list[MemberBin] | None:
        size = self._sizes[index]
        tried: dict[int, None] = {}
        # Two equal members in a row are interchangeable: only ascending orders are tried.
        start = previous.order if previous and index > 1 and self._sizes[index - 1] == size else -1
        for bin_ in list(self._rooms):
            room = self._rooms[bin_]
            if room < size or not self._allows(index, bin_) or bin_.order < start:
                continue
            if room in tried and start < 0:
                continue
            tried[room] = None
            found = self._use(bin_, index)
            if found is not None:
                return found
        return None

    def _use(self, bin_: Cell, index: int) -> list[MemberBin] | None:
        size = self._sizes[index]
        self._take(bin_, size)
        rest = self._place(index + 1, bin_)
        self._take(bin_, -size)
        if rest is None:
            return None
        return [self._demand.member_bin(bin_), *rest]

    def _take(self, bin_: Cell, size: int) -> None:
        self._rooms[bin_] -= size
        self._room -= size
        self._left -= size

    def _in_newly_mapped_cells(self, index: int) -> list[MemberBin] | None:
        demand = self._demand
        if demand.vc is None or demand.pinned is not None:
            return None
        for level in demand.vc.unused_levels(demand.chain):
            for cell in self._cells_to_map(level, index):
                self._budget.spend(_STEPS_PER_MAPPING)
                with self._table.what_if():
                    self._table.map_cell(demand.vc, cell)
                    if not self._table.supplies[demand.chain].is_safe():
                        continue
                    found = self._use_new_cell(cell, index)
                    if found is not None:
                        return found
        return None

    def _use_new_cell(self, cell: Cell, index: int) -> list[MemberBin] | None:
        """Put the member into the cell that was just mapped: otherwise mapping it was pointless."""
        inside = list(cell.at_level(min(cell.level, cell.chain.node_level)))
        self._rooms.update((bin_, bin_.idle) for bin_ in inside)
        self._room += cell.idle
        try:
            for bin_ in inside:
                if bin_.idle >= self._sizes[index] and self._allows(index, bin_):
                    found = self._use(bin_, index)
                    if found is not None:
                        return found
            return None
        finally:
            self._room -= cell.idle
            for bin_ in inside:
                del self._rooms[bin_]

    def _cells_to_map(self, level: int, index: int) -> list[Cell]:
        """Unclaimed cells of a level that hold the next member, one of each shape."""
        size, around = self._sizes[index], dict[Cell, None]()
        nodes = _in_order(self._table.idle[self._demand.chain], size)
        self._budget.spend(len(nodes) // _NODES_PER_STEP)
        for node in nodes:
            if self._allows(index, node):
                inside = node.at_level(level) if level < node.level else (node.ancestor(level),)
                around.update(dict.fromkeys(cell for cell in inside if cell.idle >= size))
        supply, found = self._table.supplies[self._demand.chain], dict[tuple[int, ...], Cell]()
        for cell in around:
            if cell.is_unclaimed():
                found.setdefault(self._shapes.within(supply.free_cell_around(cell), cell), cell)
        return list(found.values())


class _Shapes:
    """Numbers the shapes of cells; cells that differ only in their addresses have equal shapes."""

    def __init__(self, demand: Demand) -> None:
        self._demand = demand
        self._numbers: dict[object, int] = {}
        self._known: dict[Cell, int] = {}

    def within(self, outer: Cell, cell: Cell) -> tuple[int, ...]:
        """The shapes of a cell and of its ancestors up to `outer`."""
        path = [self._of(cell)]
        while cell is not outer and cell.parent is not None:
            cell = cell.parent
            path.append(self._of(cell))
        return tuple(path)

    def _of(self, cell: Cell) -> int:
        known = self._known.get(cell)
        if known is None:
            known = self._numbers.setdefault(self._shape(cell), len(self._numbers))
            self._known[cell] = known
        return known

    def _shape(self, cell: Cell) -> object:
        if cell.level == 1:
            return (cell.idle, self._demand.allowed(cell), self._demand.allowed_first(cell))
        if cell.leaf_count > _LARGEST_SHAPE:
            return cell
        return (cell.level, tuple(sorted(self._of(child) for child in cell.children)))


def _in_order(ranking: Ranking, least: int) -> list[Cell]:
    """The bins with at least this room, in the order of the tree."""
    return sorted(ranking.bins(least=least), key=lambda bin_: bin_.order)


def search(table: AllocationTable, ranking: Ranking, demand: Demand) -> list[MemberBin] | None:
    """Find a bin for each member, in the order of the sizes; None if none was found."""
    if _bin_count(table, ranking, demand) > EXACT_BINS or len(demand.sizes) > EXACT_MEMBERS:
        demand.budget.is_cut = True
        return None
    searched = _Search(table, ranking, demand)
    try:
        return searched.run()
    except OutOfBudgetError:
        demand.budget.is_cut = True
        return None
    finally:
        demand.budget.count_exact(searched.steps())


def _bin_count(table: AllocationTable, ranking: Ranking, demand: Demand) -> int:
    """Number of bins to choose from: bins of a ranking, and bins where cells can be mapped."""
    may_map = demand.vc is not None and demand.pinned is None
    has_unused = may_map and demand.vc is not None and demand.vc.unused_levels(demand.chain)
    least = demand.sizes[-1]
    idle = table.idle[demand.chain].count(least=least) if has_unused else 0
    return max(idle, ranking.count(least=least))
