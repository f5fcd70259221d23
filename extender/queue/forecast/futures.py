"""Sampled futures of the queue: when each waiting gang would start if runs end as drawn.

A light copy of the queue is played forward, without the engine: pools with counts of free leaf
cells, gangs that hold some, and waiting gangs in their order. A gang whose concrete cells are
reserved starts when the gangs that hold them have ended. In a pool without such a gang, the first
one that does not fit has a reservation. Other gangs start before it only if they end in time, or
leave enough. No gang arrives later. What the copy leaves out (topology, nodes, preemption) shows in
the errors of earlier predictions, and so in the intervals.
"""

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from math import ceil, log2
from typing import Final

from extender.cells.views.listings import Stepwise
from extender.queue.forecast.closures import Closure, CopiedPool, PoolClosures
from extender.queue.forecast.copied_gangs import NEVER, CopiedGang, KeptCells
from extender.queue.forecast.draws import share_of
from extender.queue.forecast.future_lines import First, FutureLines, Group
from policy.submission import GangKey

_STEPS: Final = 16
"""Events, draws or starts between two yields."""
_GANGS: Final = 500
"""Gangs between two yields, where there is little to do for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCopy:
    """The queue at one moment."""

    free: Mapping[CopiedPool, int]
    running: Sequence[CopiedGang]
    waiting: Sequence[CopiedGang]
    """In the order in which they are planned."""
    reserves: bool = True
    """Whether the first gang of a pool that does not fit has a reservation."""
    closures: Sequence[Closure] = ()
    """Leaf cells that gangs may not use for a time."""


@dataclass(frozen=True, slots=True)
class SampledStart:
    """When a gang starts in one future, in seconds from now, and after whose end."""

    seconds: float
    after: GangKey | None


Starts = dict[GangKey, list[SampledStart]]


def sample_starts(queue: QueueCopy, *, samples: int) -> Stepwise[Starts]:
    """Play some futures; return when each waiting gang starts in each. Yields often."""
    starts: Starts = {gang.gang: [] for gang in queue.waiting}
    groups: list[Group] = []
    for place, gang in enumerate(queue.waiting):
        groups.append(_group_of(gang, place))
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


@dataclass(slots=True, eq=False)
class _PoolState:
    free: int = 0
    ends: list[tuple[float, int, int]] = field(default_factory=list)
    """When, the number of the gang, and how many leaf cells; the next end first."""
    lines: FutureLines = field(default_factory=FutureLines)
    """Waiting gangs, with their numbers."""
    closed: PoolClosures = field(default_factory=PoolClosures)
    kept: dict[Group, KeptCells] = field(default_factory=dict)
    """What is reserved for gangs that have not started."""


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
        self._held = {gang.gang: gang.leaf_cells for gang in queue.running}
        """The leaf cells of gangs that run from the beginning and have not ended."""
        for place, closure in enumerate(queue.closures):
            self._pools.setdefault(closure.pool, _PoolState()).closed.closures.append(closure)
            self._ends.append((closure.ends, -1 - place))

    def prepare(self, groups: Sequence[Group]) -> Iterator[None]:
        """Draw what is left of gangs that run, and line up those that wait."""
        for number, gang in enumerate(self._queue.running):
            self._note_end(number, gang)
            if number % _STEPS == 0:
                yield
        for state in self._pools.values():
            state.ends.sort()
        heapify(self._ends)
        yield
        begin = len(self._queue.running)
        for place, (gang, group) in enumerate(zip(self._queue.waiting, groups, strict=True)):
            pool = self._pools.setdefault(gang.pool, _PoolState())
            pool.lines.add(group, begin + place, gang)
            if gang.kept is not None:
                pool.kept[group] = gang.kept
            if place % _GANGS == 0:
                yield

    def play(self) -> Iterator[None]:
        """Play until nothing more can start."""
        for pool in list(self._pools.values()):
            yield from self._fill(pool, after=None)
            yield
        steps, left = 0, len(self._queue.waiting) - len(self.started)
        while self._ends and left > 0:
            self._now, number = heappop(self._ends)
            if number < 0:
                closed = self._pools[self._queue.closures[-1 - number].pool]
                yield from self._fill(closed, after=None)
                left = len(self._queue.waiting) - len(self.started)
                continue
            ended = self._gangs[number]
            self._held.pop(ended.gang, None)
            for name in ended.pools:
                pool = self._pools[name]
                pool.free += ended.leaf_cells
                pool.closed.note_use(ended.exempt, -ended.leaf_cells)
                pool.ends.remove((self._now, number, ended.leaf_cells))
            for name in ended.pools:
                yield from self._fill(self._pools[name], after=ended.gang)
            left = len(self._queue.waiting) - len(self.started)
            steps += 1
            if steps % _STEPS == 0:
                yield

    def _note_end(self, number: int, gang: CopiedGang) -> None:
        for name in gang.pools:
            self._pools.setdefault(name, _PoolState()).closed.note_use(gang.exempt, gang.leaf_cells)
        left = gang.left(share_of(number, self._sample), self._sample)
        if left is None:
            return
        end = self._now + max(0.0, left)
        self._ends.append((end, number))
        for name in gang.pools:
            state = self._pools.setdefault(name, _PoolState())
            state.ends.append((end, number, gang.leaf_cells))

    def _fill(self, pool: _PoolState, *, after: GangKey | None) -> Iterator[None]:
        """Start the gangs of a pool that may start now, in their order.

        Where the first gang of a group may not start, none of it may. Gangs that ask for more than
        is free are not looked at: of these, only the first one matters, for its reservation.
        """
        while pool.free > 0 and pool.lines:
            head = self._reserved(pool)
            if head is None and self._queue.reserves:
                head = yield from self._start_up_to_head(pool, after=after)
            if not (yield from self._start_beside(pool, head, after=after)):
                return

    def _start_up_to_head(
        self, pool: _PoolState, *, after: GangKey | None
    ) -> Stepwise[tuple[float, int] | None]:
        """Start gangs up to the first one that does not fit; return what that one reserves."""
        lines, head = pool.lines, None
        while head is None and pool.free > 0 and (first := lines.first()) is not None:
            yield from self._start_probes(pool, until=first.number, after=after)
            if self._is_closed(pool, first.group):
                lines.set_aside()  # it waits for the end of a closure: no reservation helps it
            elif first.group.leaf_cells > pool.free:
                head = self._shadow(pool, first.group.leaf_cells)
            else:
                yield from self._start_first(pool, first.group, after=after)
        lines.bring_back()
        return head

    def _start_probes(
        self, pool: _PoolState, *, until: int, after: GangKey | None
    ) -> Iterator[None]:
        """Start the gangs that do not exist and come before a gang."""
        for group in pool.lines.probes(pool.free):
            while (number := pool.lines.number(group)) is not None and number < until:
                if self._is_closed(pool, group):
                    break
                yield from self._start_first(pool, group, after=after)

    def _start_beside(
        self, pool: _PoolState, head: tuple[float, int] | None, *, after: GangKey | None
    ) -> Stepwise[bool]:
        """Start gangs beside what is reserved; tell whether a reservation has come to its end."""
        shadow, spare = head or (NEVER, pool.free)
        firsts = self._candidates(pool, shadow, spare)
        while firsts and pool.free > 0:
            group = firsts[0].group
            is_kept = group in pool.kept
            in_time = is_kept or self._now + group.safe <= shadow
            fits = group.leaf_cells <= pool.free and (in_time or group.leaf_cells <= spare)
            if not fits or self._is_closed(pool, group) or not self._is_ready(pool, group):
                heappop(firsts)
                continue
            yield from self._start_first(pool, group, after=after)
            if is_kept:
                return True
            if not in_time and not group.is_probe:
                spare -= group.leaf_cells
            number = pool.lines.number(group)
            if number is None:
                heappop(firsts)
            else:
                heapreplace(firsts, First(number, group))
        return False

    def _candidates(self, pool: _PoolState, shadow: float, spare: int) -> list[First]:
        """Return, as a heap, the groups that may start beside a reservation, and those with one."""
        lines = pool.lines
        found = lines.within(pool.free, spare=spare, now=self._now, shadow=shadow)
        firsts = [first for first in found if first.group not in pool.kept]
        numbers = ((lines.number(group), group) for group in pool.kept)
        firsts += [First(number, group) for number, group in numbers if number is not None]
        heapify(firsts)
        return firsts

    def _reserved(self, pool: _PoolState) -> tuple[float, int] | None:
        """Return by when other gangs must end, and how many free leaf cells are not reserved."""
        if not pool.kept:
            return None
        idle = sum(
            max(0, group.leaf_cells - sum(self._held.get(one, 0) for one in kept.holders))
            for group, kept in pool.kept.items()
        )
        return min(kept.deadline for kept in pool.kept.values()), pool.free - idle

    def _is_ready(self, pool: _PoolState, group: Group) -> bool:
        """Tell whether the cells that a group needs are free, if these are concrete ones."""
        kept = pool.kept.get(group)
        return kept is None or not kept.needs_them or kept.holders.isdisjoint(self._held)

    def _is_closed(self, pool: _PoolState, group: Group) -> bool:
        """Tell whether a group would fit if it were not for a closure."""
        if not pool.closed.closures or group.leaf_cells > pool.free:
            return False
        now, until = self._now, self._now + group.reach
        closed = pool.closed.withheld(now=now, until=until, exempt=group.exempt, ends=pool.ends)
        return group.leaf_cells > pool.free - closed

    def _start_first(
        self, pool: _PoolState, group: Group, *, after: GangKey | None
    ) -> Iterator[None]:
        number, gang = pool.lines.take(group)
        if pool.lines.number(group) is None:
            pool.kept.pop(group, None)
        self._start(number, gang, after=after)
        if len(self.started) % _STEPS == 0:
            yield

    def _start(self, number: int, gang: CopiedGang, *, after: GangKey | None) -> None:
        self.started[gang.gang] = SampledStart(self._now, after)
        if gang.is_probe:
            return
        for name in gang.pools:
            self._pools[name].free -= gang.leaf_cells
            self._pools[name].closed.note_use(gang.exempt, gang.leaf_cells)
        left = gang.left(share_of(number, self._sample), self._sample)
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


def _group_of(gang: CopiedGang, place: int) -> Group:
    safe = NEVER
    if gang.safe is not None:
        safe = 2.0 ** (ceil(2.0 * log2(max(gang.safe, 1.0))) / 2.0)
    return Group(
        leaf_cells=gang.leaf_cells,
        safe=safe,
        reach=gang.assumed if gang.safe is None else safe,
        exempt=gang.exempt,
        is_probe=gang.is_probe,
        kept_for=-1 if gang.kept is None else place,
    )
