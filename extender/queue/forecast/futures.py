"""Sampled futures of the queue: when each waiting gang would start if runs end as drawn.

A light copy of the queue is played forward, without the engine: pools with counts of free leaf
cells, gangs that hold some, and waiting gangs in their order. The first gang of a pool that does
not fit has a reservation: a later one starts before it only if it ends in time, or leaves enough.
No gang arrives later. What the copy leaves out (topology, nodes, preemption) shows in the errors of
earlier predictions, and so in the intervals.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from math import ceil, log2
from typing import Final, NamedTuple

from extender.cells.views.listings import Stepwise
from policy.submission import GangKey

Pool = tuple[str, ...]
Draw = Callable[[float], float | None]
"""Gives the seconds that are left of a run at a probability; None if nothing is known."""

NEVER: Final = float("inf")
_STEPS: Final = 16
"""Events between two yields."""
_GANGS: Final = 500
"""Gangs between two yields, where there is little to do for each."""
_MIX: Final = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, (1 << 64) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedGang:
    """A gang that holds leaf cells, or waits for some."""

    gang: GangKey
    pool: Pool
    """Where it must fit."""
    leaf_cells: int
    left: Draw
    """What is left of its run, from now or from its start on."""
    also: tuple[Pool, ...] = ()
    """Other pools from which it takes leaf cells."""
    safe: float | None = None
    """Within which time it ends, safely enough to start before a reservation."""

    @property
    def pools(self) -> tuple[Pool, ...]:
        """All pools from which it takes leaf cells."""
        return (self.pool, *self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCopy:
    """The queue at one moment."""

    free: Mapping[Pool, int]
    running: Sequence[CopiedGang]
    waiting: Sequence[CopiedGang]
    """In the order in which they are planned."""
    reserves: bool = True
    """Whether the first gang of a pool that does not fit has a reservation."""


@dataclass(frozen=True, slots=True)
class SampledStart:
    """When a gang starts in one future, in seconds from now, and after whose end."""

    seconds: float
    after: GangKey | None


Starts = dict[GangKey, list[SampledStart]]


def sample_starts(queue: QueueCopy, *, samples: int) -> Stepwise[Starts]:
    """Play some futures; return when each waiting gang starts in each. Yields often."""
    starts: Starts = {gang.gang: [] for gang in queue.waiting}
    groups: list[_Group] = []
    for gang in queue.waiting:
        groups.append(_group_of(gang))
        if len(groups) % _GANGS == 0:
            yield
    for number in range(samples):
        future = _Future(queue, number)
        yield from future.prepare(groups)
        yield from future.play()
        for place, gang in enumerate(queue.waiting):
            found = future.started.get(gang.gang)
            starts[gang.gang].append(found or SampledStart(NEVER, None))
            if place % _GANGS == 0:
                yield
    return starts


def share_of(place: int, sample: int) -> float:
    """Return a number between 0 and 1 that looks random and is always the same."""
    first, second, third, mask = _MIX
    value = (place * 1024 + sample + 1) * first & mask
    value = (value ^ (value >> 30)) * second & mask
    value = (value ^ (value >> 27)) * third & mask
    return ((value ^ (value >> 31)) >> 11) / (1 << 53)


class _Group(NamedTuple):
    """What gangs of one pool have in common that start under the same conditions."""

    leaf_cells: int
    safe: float
    """Within which time they end, rounded up to half a power of two."""


@dataclass(slots=True, eq=False)
class _PoolState:
    free: int = 0
    ends: list[tuple[float, int, int]] = field(default_factory=list)
    """When, the number of the gang, and how many leaf cells; the next end first."""
    lines: dict[_Group, deque[tuple[int, CopiedGang]]] = field(default_factory=dict)
    """Waiting gangs, with their numbers."""


class _Future:
    """One future."""

    def __init__(self, queue: QueueCopy, sample: int) -> None:
        self._queue = queue
        self._sample = sample
        self._now = 0.0
        self.started: dict[GangKey, SampledStart] = {}
        self._pools = {pool: _PoolState(free) for pool, free in queue.free.items()}
        self._ends: list[tuple[float, int]] = []
        self._gangs = [*queue.running, *queue.waiting]

    def prepare(self, groups: Sequence[_Group]) -> Iterator[None]:
        """Draw what is left of gangs that run, and line up those that wait."""
        for number, gang in enumerate(self._queue.running):
            self._note_end(number, gang)
            if number % _GANGS == 0:
                yield
        for state in self._pools.values():
            state.ends.sort()
        heapify(self._ends)
        yield
        begin = len(self._queue.running)
        for place, (gang, group) in enumerate(zip(self._queue.waiting, groups, strict=True)):
            lines = self._pools.setdefault(gang.pool, _PoolState()).lines
            lines.setdefault(group, deque()).append((begin + place, gang))
            if place % _GANGS == 0:
                yield

    def play(self) -> Iterator[None]:
        """Play until nothing more can start."""
        for pool in list(self._pools.values()):
            self._fill(pool, after=None)
            yield
        steps, left = 0, len(self._queue.waiting) - len(self.started)
        while self._ends and left > 0:
            self._now, number = heappop(self._ends)
            ended = self._gangs[number]
            for name in ended.pools:
                pool = self._pools[name]
                pool.free += ended.leaf_cells
                pool.ends.remove((self._now, number, ended.leaf_cells))
            for name in ended.pools:
                self._fill(self._pools[name], after=ended.gang)
            left = len(self._queue.waiting) - len(self.started)
            steps += 1
            if steps % _STEPS == 0:
                yield

    def _note_end(self, number: int, gang: CopiedGang) -> None:
        left = gang.left(share_of(number, self._sample))
        if left is None:
            return
        end = self._now + max(0.0, left)
        self._ends.append((end, number))
        for name in gang.pools:
            state = self._pools.setdefault(name, _PoolState())
            state.ends.append((end, number, gang.leaf_cells))

    def _fill(self, pool: _PoolState, *, after: GangKey | None) -> None:
        """Start the gangs of a pool that may start now.

        Where the first gang of a group may not start, none of it may.
        """
        if pool.free <= 0 or not pool.lines:
            return
        firsts = [(line[0][0], group) for group, line in pool.lines.items()]
        heapify(firsts)
        head: tuple[float, int] | None = None
        while firsts and pool.free > 0:
            _, group = firsts[0]
            shadow, spare = head or (NEVER, pool.free)
            in_time = self._now + group.safe <= shadow
            if group.leaf_cells <= pool.free and (in_time or group.leaf_cells <= spare):
                if head is not None and not in_time:
                    head = shadow, spare - group.leaf_cells
                self._start_first(pool, group, after=after)
                line = pool.lines.get(group)
                if line:
                    heapreplace(firsts, (line[0][0], group))
                    continue
            elif head is None and self._queue.reserves:
                head = self._shadow(pool, group.leaf_cells)
            heappop(firsts)

    def _start_first(self, pool: _PoolState, group: _Group, *, after: GangKey | None) -> None:
        number, gang = pool.lines[group].popleft()
        if not pool.lines[group]:
            del pool.lines[group]
        self._start(number, gang, after=after)

    def _start(self, number: int, gang: CopiedGang, *, after: GangKey | None) -> None:
        self.started[gang.gang] = SampledStart(self._now, after)
        for name in gang.pools:
            self._pools[name].free -= gang.leaf_cells
        left = gang.left(share_of(number, self._sample))
        if left is None:
            return
        end = self._now + max(0.0, left)
        heappush(self._ends, (end, number))
        for name in gang.pools:
            insort(self._pools[name].ends, (end, number, gang.leaf_cells))

    def _shadow(self, pool: _PoolState, leaf_cells: int) -> tuple[float, int]:
        """Return when so many leaf cells will be free, and how many more will be free then."""
        free = pool.free
        for end, _, count in pool.ends:
            free += count
            if free >= leaf_cells:
                return end, free - leaf_cells
        return NEVER, pool.free


def _group_of(gang: CopiedGang) -> _Group:
    if gang.safe is None:
        return _Group(gang.leaf_cells, NEVER)
    steps = ceil(2.0 * log2(max(gang.safe, 1.0)))
    return _Group(gang.leaf_cells, 2.0 ** (steps / 2.0))
