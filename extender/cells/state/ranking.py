"""Bins ranked by room, so that the best one is found without looking at all.

A *bin* is a cell in which a member must lie whole: a node, or a preassigned cell below node level.
A `Ranking` holds the bins of one source (the idle cells of a chain, a VC's mapped cells, the cells
that no VC uses) with their *room*, the number of leaves that may be taken there. For each member
size that was lately asked for it also knows the *capacity* of every cell above: how many members of
that size its bins hold together. A change of one bin costs its ancestors, not the cluster.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from extender.cells.budget import KNOWN_SIZES
from extender.cells.state.tree import Cell, ChainTree
from policy.submission import NodeName

_Key = tuple[int, int]


class _Sizes:
    """Capacity of all cells above the bins, for members of one size."""

    def __init__(self, rooms: Mapping[Cell, int], size: int) -> None:
        self.capacity: dict[Cell, int] = {}
        self.ranked: dict[int, list[_Key]] = {}
        layers: dict[int, dict[Cell, int]] = {}
        for bin_, room in rooms.items():
            if room >= size:
                layers.setdefault(bin_.level, {})[bin_] = room // size
        level = min(layers, default=0)
        while level in layers:
            above = layers.setdefault(level + 1, {})
            for cell, count in layers[level].items():
                if cell.parent is not None:
                    above[cell.parent] = above.get(cell.parent, 0) + count
            inner = {cell: count for cell, count in layers[level].items() if cell not in rooms}
            self._take_in(level, inner)
            level = level + 1 if above else -1

    def _take_in(self, level: int, cells: dict[Cell, int]) -> None:
        if cells:
            self.capacity.update(cells)
            self.ranked[level] = sorted((count, cell.order) for cell, count in cells.items())

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


_NONE = _Sizes({}, 1)


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
        self._tree = tree
        self._cells = tree.cells
        self.root = tree.root
        self._room: dict[Cell, int] = {}
        self._ranked: list[_Key] = []
        self._sizes: dict[int, _Sizes] = {}
        self._with_room: dict[int, int] = {}
        """How many bins have each room."""
        self.promised = 0
        """Leaves that its VC was promised there, mapped or not."""
        self.total = 0
        """Room of all bins together."""

    def __contains__(self, bin_: Cell) -> bool:
        return bin_ in self._room

    def __len__(self) -> int:
        return len(self._room)

    def only(self, nodes: Collection[NodeName]) -> "Ranking":
        """The bins on some nodes; costs the number of those, or of all bins."""
        found = Ranking(self._tree)
        if len(nodes) > len(self._room):
            found._room = {b: room for b, room in self._room.items() if b.node in nodes}
        else:
            by_node, room = self._tree.by_node, self._room
            cells = [by_node[name] for name in nodes if name in by_node]
            found._room = {cell: room[cell] for cell in cells if cell in room}
            for cell in [cell for cell in cells if cell.claims_below]:
                found._room |= {bin_: room[bin_] for bin_ in self._bins_in(cell)}
        found.total = sum(found._room.values())
        found._ranked = sorted((room, bin_.order) for bin_, room in found._room.items())
        found._with_room = Counter(found._room.values())
        return found

    def _bins_in(self, cell: Cell) -> Iterator[Cell]:
        if cell in self._room:
            yield cell
        elif cell.claims_below:
            for child in cell.children:
                yield from self._bins_in(child)

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
            self._with_room[old] -= 1
        if room:
            insort(self._ranked, (room, bin_.order))
            self._room[bin_] = room
            self._with_room[room] = self._with_room.get(room, 0) + 1
        for size, above in self._sizes.items():
            if old // size != room // size:
                above.add(bin_, room // size - old // size)

    def bins(self, *, least: int = 1) -> Iterator[Cell]:
        """All bins with so much room, the tightest first."""
        for index in range(bisect_left(self._ranked, (least, -1)), len(self._ranked)):
            yield self._cells[self._ranked[index][1]]

    def usable(self, least: int) -> int:
        """Room of the bins that hold a member of so many leaf cells."""
        return sum(room * count for room, count in self._with_room.items() if room >= least)

    def count(self, *, least: int) -> int:
        """How many bins have so much room."""
        return len(self._ranked) - bisect_left(self._ranked, (least, -1))

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
        if known is not None:
            return known
        if not self._ranked or self._ranked[-1][0] < size:
            return _NONE  # no bin holds one: nothing to be remembered
        if len(self._sizes) >= KNOWN_SIZES:
            del self._sizes[next(iter(self._sizes))]
        known = self._sizes[size] = _Sizes(self._room, size)
        return known

    def audit(self) -> dict[Cell, int]:
        """Room by bin, after checking that the index agrees with it."""
        assert self.total == sum(self._room.values())
        assert self._ranked == sorted((room, bin_.order) for bin_, room in self._room.items())
        assert +Counter(self._with_room) == Counter(self._room.values())
        for size, above in self._sizes.items():
            fresh = _Sizes(self._room, size)
            assert fresh.capacity == above.capacity
            kept = {level: ranked for level, ranked in above.ranked.items() if ranked}
            assert fresh.ranked == kept
        return dict(self._room)
