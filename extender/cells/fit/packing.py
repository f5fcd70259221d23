"""Members of a gang packed into bins one after the other: near the others first, then tight."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence

from extender.cells.state.tree import Cell

_Ranked = list[tuple[int, int]]


class Packing:
    """Rooms of some bins of one chain, while members are put into them."""

    def __init__(self, rooms: Mapping[Cell, int]) -> None:
        self._bins: dict[int, Cell] = {}
        self._room: dict[int, int] = {}
        self._far: _Ranked = []
        self._near: _Ranked = []
        """Bins beside those that have members already; ranked by room, like the far ones."""
        self._zones: dict[Cell, list[int]] = {}
        """Far bins by the cell that they are children of, if that has no member yet."""
        for bin_, room in rooms.items():
            self._add(bin_, room)
            self._far.append((room, bin_.order))
            self._zones.setdefault(_zone(bin_), []).append(bin_.order)
        self._far.sort()

    def open(self, rooms: Mapping[Cell, int]) -> None:
        """More bins, opened for this gang."""
        for bin_, room in rooms.items():
            self._add(bin_, room)
            insort(self._near, (room, bin_.order))

    def put(self, size: int) -> Cell | None:
        """Find a bin for the next member and take its room; None if there is none."""
        for ranked in (self._near, self._far):
            at = bisect_left(ranked, (size, -1))
            if at < len(ranked):
                room, order = ranked.pop(at)
                self._room[order] = room - size
                insort(self._near, (room - size, order))
                self._come_near(self._bins[order])
                return self._bins[order]
        return None

    def _add(self, bin_: Cell, room: int) -> None:
        self._bins[bin_.order] = bin_
        self._room[bin_.order] = room

    def _come_near(self, used: Cell) -> None:
        """The far bins beside one that has a member now are near."""
        for order in self._zones.pop(_zone(used), ()):
            if order != used.order:
                entry = (self._room[order], order)
                del self._far[bisect_left(self._far, entry)]
                insort(self._near, entry)


def _zone(bin_: Cell) -> Cell:
    return bin_.parent or bin_


def pack(rooms: Mapping[Cell, int], sizes: Sequence[int]) -> list[Cell] | None:
    """Pack members best-fit, the largest first; None if that fails."""
    by_order = {bin_.order: bin_ for bin_ in rooms}
    left, found = sorted((room, bin_.order) for bin_, room in rooms.items()), []
    for size in sizes:
        at = bisect_left(left, (size, -1))
        if at == len(left):
            return None
        room, order = left.pop(at)
        insort(left, (room - size, order))
        found.append(by_order[order])
    return found
