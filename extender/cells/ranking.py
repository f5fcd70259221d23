"""Bins ranked by room, so that the best one is found without looking at all.

A *bin* is a cell in which a member must lie whole: a node, or a preassigned cell below node level.
A `Ranking` holds the bins of one source (the idle cells of a chain, a VC's mapped cells, the cells
that no VC uses) with their *room*, the number of leaves that may be taken there. For each member
size that was ever asked for it also knows the *capacity* of every cell above: how many members of
that size its bins hold together. A change of one bin costs its ancestors, not the cluster.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator

from extender.cells.tree import Cell, ChainTree

_Key = tuple[int, int]


class _Sizes:
    """Capacity of all cells above the bins, for members of one size."""

    def __init__(self) -> None:
        self.capacity: dict[Cell, int] = {}
        self.ranked: dict[int, list[_Key]] = {}

    def add(self, bin_: Cell, delta: int) -> None:
        cell = bin_.parent
        while cell is not None and delta:
            old = self.capacity.get(cell, 0)
            ranked = self.ranked.setdefault(cell.level, [])
            if old:
                del ranked[bisect_left(ranked, (old, cell.order))]
            if old + delta:
                insort(ranked, (old + delta, cell.order))
                self.capacity[cell] = old + delta
            else:
                del self.capacity[cell]
            cell = cell.parent


def _descending(ranked: list[_Key]) -> Iterator[_Key]:
    """The largest first; equal ones in order."""
    end = len(ranked)
    while end:
        start = bisect_left(ranked, (ranked[end - 1][0], -1))
        for index in range(start, end):
            yield ranked[index]
        end = start


class Ranking:
    """The bins of one source in one chain; a bin without room is not in it."""

    def __init__(self, tree: ChainTree) -> None:
        self._cells = tree.cells
        self.root = tree.root
        self._room: dict[Cell, int] = {}
        self._ranked: list[_Key] = []
        self._sizes: dict[int, _Sizes] = {}
        self.promised = 0
        """Leaves that its VC was promised there, mapped or not."""
        self.total = 0
        """Room of all bins together."""

    def __contains__(self, bin_: Cell) -> bool:
        return bin_ in self._room

    def room(self, bin_: Cell) -> int:
        """Leaves that may be taken in a bin."""
        return self._room.get(bin_, 0)

    def put(self, bin_: Cell, room: int) -> None:
        """Take note of a bin's room; 0 takes it out."""
        old = self._room.get(bin_, 0)
        if old == room:
            return
        self.total += room - old
        if old:
            del self._ranked[bisect_left(self._ranked, (old, bin_.order))]
            del self._room[bin_]
        if room:
            insort(self._ranked, (room, bin_.order))
            self._room[bin_] = room
        for size, above in self._sizes.items():
            above.add(bin_, room // size - old // size)

    def bins(self, *, least: int = 1) -> Iterator[Cell]:
        """All bins with so much room, the tightest first."""
        for index in range(bisect_left(self._ranked, (least, -1)), len(self._ranked)):
            yield self._cells[self._ranked[index][1]]

    def in_order(self) -> list[Cell]:
        """All bins, in the order of the tree."""
        return [self._cells[order] for order in sorted(order for _, order in self._ranked)]

    def capacity(self, cell: Cell, size: int) -> int:
        """How many members of a size fit in a cell."""
        if cell in self._room:
            return self._room[cell] // size
        return self._of(size).capacity.get(cell, 0)

    def cells(self, level: int, *, size: int, least: int) -> Iterator[Cell]:
        """Cells of a level above the bins that hold `least` members of a size, tightest first."""
        ranked = self._of(size).ranked.get(level, [])
        for index in range(bisect_left(ranked, (least, -1)), len(ranked)):
            yield self._cells[ranked[index][1]]

    def largest(self, level: int, *, size: int) -> Iterator[Cell]:
        """Cells of a level above the bins that hold any member, the roomiest first."""
        for _, order in _descending(self._of(size).ranked.get(level, [])):
            yield self._cells[order]

    def largest_bins(self, *, least: int) -> Iterator[Cell]:
        """All bins with so much room, the roomiest first."""
        for room, order in _descending(self._ranked):
            if room < least:
                return
            yield self._cells[order]

    def _of(self, size: int) -> _Sizes:
        known = self._sizes.get(size)
        if known is None:
            known = self._sizes[size] = _Sizes()
            for bin_, room in self._room.items():
                known.add(bin_, room // size)
        return known

    def audit(self) -> dict[Cell, int]:
        """Room by bin, after checking that the index agrees with it."""
        assert self.total == sum(self._room.values())
        assert self._ranked == sorted((room, bin_.order) for bin_, room in self._room.items())
        for size, above in self._sizes.items():
            fresh = _Sizes()
            for bin_, room in self._room.items():
                fresh.add(bin_, room // size)
            assert fresh.capacity == above.capacity
            kept = {level: ranked for level, ranked in above.ranked.items() if ranked}
            assert {level: sorted(r) for level, r in fresh.ranked.items() if r} == kept
        return dict(self._room)
