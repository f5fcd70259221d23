"""Waiting gangs of one pool while a future is played, by what lets them start.

Gangs that start under the same conditions are one *group*. An event looks at the groups that ask
for no more than is free, and at the first gang of all: its cost does not grow with the number of
different groups that wait.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

from extender.queue.forecast.copied_gangs import CopiedGang


class Group(NamedTuple):
    """What gangs of one pool have in common that start under the same conditions."""

    leaf_cells: int
    safe: float
    """Within which time they end, rounded up to half a power of two."""
    reach: float = inf
    """How long they count as running at closures."""
    exempt: frozenset[str] = frozenset()
    is_probe: bool = False
    kept_for: int = -1
    """The place of the one gang of the group for which concrete cells are reserved."""


class First(NamedTuple):
    """The first gang of a group, by its number."""

    number: int
    group: Group


_Sized = tuple[int, int, Group]
"""The leaf cells of a group, a number that tells groups apart, the group."""


class FutureLines:
    """The gangs of one pool that have not started, with their numbers."""

    def __init__(self) -> None:
        self._lines: dict[Group, deque[tuple[int, CopiedGang]]] = {}
        self._sized: dict[Group, _Sized] = {}
        self._lanes: dict[tuple[float, bool], list[_Sized]] = {}
        """Groups by their sizes; in each lane those that end within the same time."""
        self._order: list[First] = []
        """A heap of the groups of gangs that exist, with outdated entries."""
        self._aside: list[First] = []

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, group: Group, number: int, gang: CopiedGang) -> None:
        """Add a gang behind all others."""
        line = self._lines.get(group)
        if line is None:
            line = self._lines[group] = deque()
            sized = self._sized[group] = group.leaf_cells, number, group
            insort(self._lanes.setdefault((group.safe, group.is_probe), []), sized)
            self._offer(group, number)
        line.append((number, gang))

    def take(self, group: Group) -> tuple[int, CopiedGang]:
        """Take the first gang of a group out."""
        line = self._lines[group]
        taken = line.popleft()
        if line:
            self._offer(group, line[0][0])
        else:
            del self._lines[group]
            self._leave_lane(group)
        return taken

    def _offer(self, group: Group, number: int) -> None:
        if not group.is_probe:
            heappush(self._order, First(number, group))

    def _leave_lane(self, group: Group) -> None:
        key = group.safe, group.is_probe
        lane = self._lanes[key]
        del lane[bisect_left(lane, self._sized.pop(group))]
        if not lane:
            del self._lanes[key]

    def number(self, group: Group) -> int | None:
        """Return the number of the first gang of a group; None if there is none."""
        line = self._lines.get(group)
        return line[0][0] if line else None

    def first(self) -> First | None:
        """Return the first gang that exists and is not set aside."""
        order = self._order
        while order and self.number(order[0].group) != order[0].number:
            heappop(order)
        return order[0] if order else None

    def set_aside(self) -> None:
        """Leave the first gang out until `bring_back`."""
        self._aside.append(heappop(self._order))

    def bring_back(self) -> None:
        """Let all gangs count again."""
        for first in self._aside:
            heappush(self._order, first)
        self._aside.clear()

    def probes(self, free: int) -> list[Group]:
        """Return the groups of gangs that do not exist and ask for no more than is free."""
        lanes = [lane for (_, is_probe), lane in self._lanes.items() if is_probe]
        return [group for lane in lanes for group in _up_to(lane, free)]

    def within(self, free: int, *, spare: int, now: float, shadow: float) -> Iterator[First]:
        """Yield the groups that ask for no more than is free.

        Those that may not have ended at `shadow` ask for no more than `spare`, too.
        """
        for (safe, _), lane in self._lanes.items():
            for group in _up_to(lane, free if now + safe <= shadow else min(free, spare)):
                yield First(self._lines[group][0][0], group)


def _up_to(lane: list[_Sized], most: int) -> list[Group]:
    if lane[0][0] > most:
        return []
    return [group for _, _, group in lane[: bisect_right(lane, (most, inf))]]
