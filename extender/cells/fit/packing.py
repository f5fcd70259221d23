"""Packs members into bins one after the other: best fit, bins near earlier members first."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence

from extender.cells.state.tree import Cell

_Ranked = list[tuple[int, int]]


class Packing:
    """The remaining room of some bins of one chain while members are packed into them."""

    def __init__(self, rooms: Mapping[Cell, int]) -> None:
        self._bins: dict[int, Cell] = {}
        self._room: dict[int, int] = {}
        self._far: _Ranked = []
        self._near: _Ranked = []
        """Bins that share a parent with a bin that has a member; both lists are ranked by room."""
        self._far_siblings: dict[Cell, list[int]] = {}
        """Far bins by their parent."""
        for bin_, room in rooms.items():
            self._add(bin_, room)
            self._far.append((room, bin_.order))
            self._far_siblings.setdefault(_parent(bin_), []).append(bin_.order)
        self._far.sort()

    def add(self, rooms: Mapping[Cell, int]) -> None:
        """Add bins of a cell that was just mapped for this gang; they count as near."""
        for bin_, room in rooms.items():
            self._add(bin_, room)
            insort(self._near, (room, bin_.order))

    def put(self, size: int) -> Cell | None:
        """Choose a bin for the next member and take room in it; None if none has enough."""
        for ranked in (self._near, self._far):
            at = bisect_left(ranked, (size, -1))
            if at < len(ranked):
                room, order = ranked.pop(at)
                self._room[order] = room - size
                insort(self._near, (room - size, order))
                self._mark_siblings_near(self._bins[order])
                return self._bins[order]
        return None

    def _add(self, bin_: Cell, room: int) -> None:
        self._bins[bin_.order] = bin_
        self._room[bin_.order] = room

    def _mark_siblings_near(self, used: Cell) -> None:
        for order in self._far_siblings.pop(_parent(used), ()):
            if order != used.order:
                entry = (self._room[order], order)
                del self._far[bisect_left(self._far, entry)]
                insort(self._near, entry)


def _parent(bin_: Cell) -> Cell:
    return bin_.parent or bin_


def pack(rooms: Mapping[Cell, int], sizes: Sequence[int]) -> list[Cell] | None:
    """Pack members best fit, in the order of `sizes`; None if one of them does not fit."""
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
