"""Bins ranked by room: finds the best bin without visiting all.

A *bin* is a cell in which a member must lie whole: a node, or a preassigned cell below node level.
A `Ranking` holds the bins of one source (the idle cells of a chain, a VC's mapped cells, or the
cells that no VC uses) with their *room*, the number of leaves that can be taken there. For each
member size that was queried lately it also knows the *capacity* of every cell above the bins: how
many members of this size its bins hold together. A change of one bin costs time proportional to the
number of its ancestors, not to the size of the cluster.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from extender.cells.budget import KNOWN_SIZES
from extender.cells.state.tree import Cell, ChainTree
from policy.submission import NodeName

_Key = tuple[int, int]


class _Capacities:
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
            self._set_level(level, inner)
            level = level + 1 if above else -1

    def _set_level(self, level: int, cells: dict[Cell, int]) -> None:
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


_NONE = _Capacities({}, 1)


def _descending(ranked: list[_Key]) -> Iterator[_Key]:
    """Largest first; equal ones in the order of the tree."""
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
        self._capacities: dict[int, _Capacities] = {}
        """By member size."""
        self._bin_counts: dict[int, int] = {}
        """By room: the number of bins that have it."""
        self.promised = 0
        """Leaves that its VC was promised in this chain, mapped or not."""
        self.total = 0
        """Sum of the room of all bins."""

    def __contains__(self, bin_: Cell) -> bool:
        return bin_ in self._room

    def __len__(self) -> int:
        return len(self._room)

    def only(self, nodes: Collection[NodeName]) -> "Ranking":
        """A ranking of the bins on some nodes; costs the smaller of both numbers."""
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
        found._bin_counts = Counter(found._room.values())
        return found

    def _bins_in(self, cell: Cell) -> Iterator[Cell]:
        if cell in self._room:
            yield cell
        elif cell.claims_below:
            for child in cell.children:
                yield from self._bins_in(child)

    def room(self, bin_: Cell) -> int:
        """Leaves that can be taken in a bin."""
        return self._room.get(bin_, 0)

    def put(self, bin_: Cell, room: int) -> None:
        """Set the room of a bin; 0 removes the bin."""
        old = self._room.get(bin_, 0)
        if old == room:
            return
        self.total += room - old
        if old:
            del self._ranked[bisect_left(self._ranked, (old, bin_.order))]
            del self._room[bin_]
            self._bin_counts[old] -= 1
        if room:
            insort(self._ranked, (room, bin_.order))
            self._room[bin_] = room
            self._bin_counts[room] = self._bin_counts.get(room, 0) + 1
        for size, above in self._capacities.items():
            if old // size != room // size:
                above.add(bin_, room // size - old // size)

    def bins(self, *, least: int = 1) -> Iterator[Cell]:
        """All bins with at least this room, least room first."""
        for index in range(bisect_left(self._ranked, (least, -1)), len(self._ranked)):
            yield self._cells[self._ranked[index][1]]

    def usable(self, least: int) -> int:
        """Sum of the room of all bins with at least this room each."""
        return sum(room * count for room, count in self._bin_counts.items() if room >= least)

    def count(self, *, least: int) -> int:
        """Number of bins with at least this room."""
        return len(self._ranked) - bisect_left(self._ranked, (least, -1))

    def capacity(self, cell: Cell, size: int) -> int:
        """Number of members of a size that fit in a cell."""
        if cell in self._room:
            return self._room[cell] // size
        return self._capacities_for(size).capacity.get(cell, 0)

    def cells(self, level: int, *, size: int, least: int) -> Iterator[Cell]:
        """Cells above the bins that hold `least` members of a size, least capacity first."""
        ranked = self._capacities_for(size).ranked.get(level, [])
        for index in range(bisect_left(ranked, (least, -1)), len(ranked)):
            yield self._cells[ranked[index][1]]

    def largest(self, level: int, *, size: int) -> Iterator[Cell]:
        """Cells above the bins that hold any member of a size, most capacity first."""
        for _, order in _descending(self._capacities_for(size).ranked.get(level, [])):
            yield self._cells[order]

    def largest_bins(self, *, least: int) -> Iterator[Cell]:
        """All bins with at least this room, most room first."""
        for room, order in _descending(self._ranked):
            if room < least:
                return
            yield self._cells[order]

    def _capacities_for(self, size: int) -> _Capacities:
        known = self._capacities.get(size)
        if known is not None:
            return known
        if not self._ranked or self._ranked[-1][0] < size:
            return _NONE  # no bin holds a member of this size: an index would be empty
        if len(self._capacities) >= KNOWN_SIZES:
            del self._capacities[next(iter(self._capacities))]
        known = self._capacities[size] = _Capacities(self._room, size)
        return known

    def audit(self) -> dict[Cell, int]:
        """Room by bin; asserts that all indexes agree with it."""
        assert self.total == sum(self._room.values())
        assert self._ranked == sorted((room, bin_.order) for bin_, room in self._room.items())
        assert +Counter(self._bin_counts) == Counter(self._room.values())
        for size, above in self._capacities.items():
            fresh = _Capacities(self._room, size)
            assert fresh.capacity == above.capacity
            kept = {level: ranked for level, ranked in above.ranked.items() if ranked}
            assert fresh.ranked == kept
        return dict(self._room)
