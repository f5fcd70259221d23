"""Exact search: every way to map a VC's unused cells and to pack members into bins, until one fits.

Packing unequal members is bin packing, and bad or withheld nodes can make the choice of physical
cells matter, so no rule of thumb is exact. Interchangeable choices (equal room; equal free cells)
are tried once. The search has a budget: beyond it, and where more than `EXACT_BINS` bins have room,
the quick ways of `fitting` stand alone, and the budget says so.
"""

from extender.cells.demand import Demand, Spot
from extender.cells.limits import EXACT_BINS, EXACT_MEMBERS, EXACT_STEPS, Budget, OutOfBudgetError
from extender.cells.ranking import Ranking
from extender.cells.table import Table
from extender.cells.tree import Cell

_LARGEST_SHAPE = 256
"""Leaf cells of the largest free cell that is compared with others; larger ones are different."""


class _Search:
    def __init__(self, table: Table, ranking: Ranking, demand: Demand) -> None:
        self._table = table
        self._demand = demand
        self._rooms = {bin_: ranking.room(bin_) for bin_ in _in_order(ranking, demand.sizes[-1])}
        self._room = sum(self._rooms.values())
        # The member that asks goes first: it is the choosiest.
        rest = list(demand.sizes)
        rest.remove(demand.first_size)
        self._sizes = (demand.first_size, *rest)
        self._left = sum(self._sizes)
        self._most = min(EXACT_STEPS, demand.budget.left)
        self._budget = Budget(self._most)

    def run(self) -> list[Spot] | None:
        found = self._place(0, None)
        if found is None:
            return None
        first, rest = found[0], list(found[1:])
        # Back to the order of the demand's sizes.
        return [
            *rest[: (at := self._demand.sizes.index(self._demand.first_size))],
            first,
            *rest[at:],
        ]

    def steps(self) -> int:
        """Steps that were taken."""
        return self._most - max(0, self._budget.left)

    def _place(self, index: int, previous: Cell | None) -> list[Spot] | None:
        if index == len(self._sizes):
            return []
        self._budget.spend()
        if not self._has_enough():
            return None
        return self._in_open_bins(index, previous) or self._in_openings(index)

    def _has_enough(self) -> bool:
        """Cheap bound: leaves in open bins and in unused cells cover what is left."""
        demand, room = self._demand, self._room
        if demand.vc is not None and demand.pinned is None:
            tree = self._table.trees[demand.chain]
            for level in demand.vc.unused_levels(demand.chain):
                leaves = tree.levels[level - 1].leaf_count
                room += leaves * demand.vc.unused(demand.chain, level)
        return room >= self._left

    def _allows(self, index: int, bin_: Cell) -> bool:
        return (self._demand.allowed if index else self._demand.allowed_first)(bin_)

    def _in_open_bins(self, index: int, previous: Cell | None) -> list[Spot] | None:
        size = self._sizes[index]
        tried: dict[int, None] = {}
        # Equal members in a row need not be tried in both orders.
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

    def _use(self, bin_: Cell, index: int) -> list[Spot] | None:
        size = self._sizes[index]
        self._take(bin_, size)
        rest = self._place(index + 1, bin_)
        self._take(bin_, -size)
        if rest is None:
            return None
        claim = bin_.enclosing_claim() if self._demand.vc is not None else None
        return [Spot(bin_, claim.cell if claim else None), *rest]

    def _take(self, bin_: Cell, size: int) -> None:
        self._rooms[bin_] -= size
        self._room -= size
        self._left -= size

    def _in_openings(self, index: int) -> list[Spot] | None:
        demand = self._demand
        if demand.vc is None or demand.pinned is not None:
            return None
        for level in demand.vc.unused_levels(demand.chain):
            for cell in self._openings(level):
                with self._table.what_if():
                    self._table.map_cell(demand.vc, cell)
                    if not self._table.supplies[demand.chain].is_safe():
                        continue
                    found = self._open(cell, index)
                    if found is not None:
                        return found
        return None

    def _open(self, cell: Cell, index: int) -> list[Spot] | None:
        """The member goes into the cell that was just mapped, else mapping it made no sense."""
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

    def _openings(self, level: int) -> list[Cell]:
        """Unclaimed cells of a level with idle leaves, one for each that is different."""
        supply = self._table.supplies[self._demand.chain]
        around: dict[Cell, None] = {}
        for node in self._table.idle[self._demand.chain].in_order():
            inside = node.at_level(level) if level < node.level else (node.ancestor(level),)
            around.update(dict.fromkeys(cell for cell in inside if cell.idle))
        found: dict[object, Cell] = {}
        for cell in around:
            if cell.is_unclaimed():
                free = supply.free_cell_around(cell)
                found.setdefault(_shape(free, cell, self._demand), cell)
        return list(found.values())


def _in_order(ranking: Ranking, least: int) -> list[Cell]:
    """The bins with so much room, in the order of the tree."""
    return sorted(ranking.bins(least=least), key=lambda bin_: bin_.order)


def _shape(cell: Cell, marked: Cell, demand: Demand) -> object:
    """A value that is equal for cells that are alike but for their addresses."""
    if cell.level == 1:
        flags = (demand.allowed(cell), demand.allowed_first(cell))
        return (cell is marked, cell.idle, *flags)
    if cell.leaf_count > _LARGEST_SHAPE:
        return marked.order
    inside = sorted(repr(_shape(child, marked, demand)) for child in cell.children)
    return (cell is marked, tuple(inside))


def search(table: Table, ranking: Ranking, demand: Demand) -> list[Spot] | None:
    """Find a spot for each member, in the order of the sizes; None if there is no way."""
    if _open_bins(table, ranking, demand) > EXACT_BINS or len(demand.sizes) > EXACT_MEMBERS:
        demand.budget.is_cut = True
        return None
    searched = _Search(table, ranking, demand)
    try:
        return searched.run()
    except OutOfBudgetError:
        demand.budget.is_cut = True
        return None
    finally:
        demand.budget.left -= searched.steps()


def _open_bins(table: Table, ranking: Ranking, demand: Demand) -> int:
    """Bins among which is chosen: those of a ranking, and those where cells could be mapped."""
    may_map = demand.vc is not None and demand.pinned is None
    has_unused = may_map and demand.vc is not None and demand.vc.unused_levels(demand.chain)
    idle = len(table.idle[demand.chain]) if has_unused else 0
    return max(idle, ranking.count(least=demand.sizes[-1]))
