"""Which gangs may use the gaps before reservations, and what reservations mean for each gang."""

from collections.abc import Callable, Collection, Hashable
from dataclasses import replace
from math import inf, log2

from extender.cells.model import NONE_KEPT, KeptCells, Withheld
from extender.queue.ports import Cells
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.backfill import FREE, Guard, kept_of
from extender.queue.reserve.calendar import Calendar
from extender.queue.reserve.model import Reservation
from extender.queue.seen_gangs import SeenGangs
from extender.queue.waiting_gangs import WaitingGangs
from policy.submission import GangKey, VcName

_CLASSIFIED = 64
"""Gangs that wait because of how long they may run and that are looked at in one review."""
_LONGEST_CLASS = 64


class Gaps:
    """Tells for each gang which cells it leaves alone, and how long it may run on others."""

    def __init__(
        self,
        cells: Cells,
        calendar: Calendar,
        *,
        seen: SeenGangs,
        waiting: WaitingGangs,
        in_force: Callable[[], Collection[Reservation]],
    ) -> None:
        self._cells = cells
        self._calendar = calendar
        self._seen = seen
        self._waiting = waiting
        self._in_force = in_force
        self._bound: dict[GangKey, None] = {}
        """Gangs that could use a gap if they were expected to run for a shorter time."""
        self._backfilled: list[GangKey] = []
        self.started: dict[GangKey, float] = {}
        """When each gang got its places, or was first seen with them."""
        self._kept: dict[Hashable, tuple[list[Reservation], KeptCells]] = {}
        """Which reservations keep how much from gangs that are alike; empty after each change of
        cells or reservations."""

    def guard(self, gang: QueuedGang, *, ends_at: float | None = None) -> Guard:
        """Return what reservations and windows mean for a gang that is planned now.

        `ends_at` is when it ends if it starts now; otherwise that is what is expected of it.
        They do not bind a gang of which members run, or that waits for its victims to end. A gang
        that may preempt, of a higher priority than the one with the reservation, could end that
        gang as soon as it runs: such gangs are not bound either.
        """
        maintained = self._calendar.closed_to(gang, ends_at=ends_at)
        others = [one for one in self._in_force() if one.gang != gang.key]
        if maintained and ends_at is None:
            self._bound[gang.key] = None
        if not others or gang.has_begun or self._cells.is_preempting(gang.key):
            return Guard(maintained=maintained) if maintained else FREE
        domain, now = self._cells.domain(gang.first.request), self._calendar.now
        covered = self._calendar.covered(gang)
        binding = tuple(
            bound
            for one in others
            if one.entry not in covered and (bound := self._binding(one, gang, domain)) is not None
        )
        own = [one for one in others if one.entry in covered]
        free = [one for one in others if one not in (*binding, *own) and one.domain is not None]
        due = [one for one in free if domain is None and self._is_due(one)]
        if (binding or due) and ends_at is None:
            self._bound[gang.key] = None
            run = self._calendar.ends_within(gang.key)
            ends_at = None if run is None else now + run
        return Guard(
            binding=binding,
            closed={
                node: self._withheld_for(one)
                for one in due
                if ends_at is None or ends_at > one.deadline
                for node in one.nodes
            },
            avoided=tuple(node for one in free for node in one.nodes),
            ends_at=ends_at,
            counts_until=now + self._calendar.counts_for(gang) if ends_at is None else ends_at,
            own=tuple(node for one in own if one.domain == domain for node in one.nodes),
            maintained=maintained,
            notes={
                one.entry: self._calendar.note_of_entry(one.entry)
                for one in binding
                if one.entry is not None
            },
        )

    def _is_due(self, one: Reservation) -> bool:
        """Tell whether too little time is left before a reservation for a minimum run."""
        left = max(0.0, one.deadline - self._calendar.now)
        return left < self._calendar.queues.preemption.minimum_run

    def _withheld_for(self, one: Reservation) -> Withheld:
        return one.gang if one.entry is None else self._calendar.note_of_entry(one.entry)

    def _binding(
        self, one: Reservation, gang: QueuedGang, domain: VcName | None
    ) -> Reservation | None:
        """Return what binds a gang of a reservation; None if it does not concern the gang."""
        if one.entry is None:
            return one if one.domain == domain and _binds(one, gang) else None
        if one.domain == domain:
            return one
        # Its leaf cells, and not what they count against, since that is of no use to others.
        has_begun = one.deadline <= self._calendar.now
        return replace(one, drained=()) if domain is None and has_begun else None

    def kept_from(self, gang: QueuedGang, *, runs: float) -> KeptCells:
        """Return how many leaf cells are kept from a gang that runs for at least a time.

        At least as many: what advance reservations keep from opportunistic gangs is not counted.
        """
        asks, own = gang.first, gang.key if gang.has_reservation else None
        key = (
            self._cells.domain(asks.request),
            asks.request.priority,
            asks.may_preempt,
            gang.covered,
            own,
        )
        if key not in self._kept:
            bound = [one for one in self._in_force() if _keeps_from(one, gang, key[0])]
            self._kept[key] = bound, self._cells.kept_cells(key[0], kept_of(bound))
        bound, kept = self._kept[key]
        if any(self._may_end_before(one, gang, runs=runs) for one in bound):
            return NONE_KEPT  # it may use the gap before this one
        return kept

    def _may_end_before(self, one: Reservation, gang: QueuedGang, *, runs: float) -> bool:
        if one.entry is not None and runs == inf:
            runs = self._calendar.counts_for(gang)
        return self._calendar.now + runs <= one.deadline

    def note_cells(self) -> None:
        """Cells were taken or became free, or reservations have changed."""
        self._kept.clear()

    def note_backfill(self, gang: GangKey, reservation: Reservation) -> None:
        """Note that a gang uses reserved cells meanwhile."""
        self._backfilled.append(gang)

    def classify(self, gang: QueuedGang) -> None:
        """Note how long a gang is expected to run, in half octaves, and what is reserved for it."""
        self.started.pop(gang.key, None)
        gang.covered = self._calendar.covered(gang)
        run = self._calendar.ends_within(gang.key)
        gang.run_class = _LONGEST_CLASS if run is None else run_class(run)

    def classify_again(self) -> None:
        """Plan gangs again that are expected to run for another time: some in each review."""
        may_bind = bool(self._in_force() or self._calendar.queues.maintenance)
        for key in list(self._bound)[:_CLASSIFIED]:
            del self._bound[key]
            gang = self._seen.find(key)
            if gang is None or not may_bind or self._waiting.pool(key) is None:
                continue
            before = gang.run_class
            self.classify(gang)
            if gang.run_class != before:
                self._seen.note_change(key)
            else:
                self._bound[key] = None

    def cover_again(self, key: GangKey) -> None:
        """Look again at a waiting gang whose advance reservations may have changed."""
        gang = self._seen.find(key)
        if gang is not None and gang.pods and self._calendar.covered(gang) != gang.covered:
            self._seen.note_change(key)

    def take_backfilled(self) -> list[GangKey]:
        """Return the gangs that use reserved cells since this was last asked."""
        found, self._backfilled = self._backfilled, []
        return found


def _keeps_from(one: Reservation, gang: QueuedGang, domain: VcName | None) -> bool:
    """Tell whether a gang that has not begun leaves the cells of a reservation alone."""
    if one.gang == gang.key or one.domain != domain:
        return False
    return _binds(one, gang) if one.entry is None else one.entry not in gang.covered


def _binds(one: Reservation, gang: QueuedGang) -> bool:
    first = gang.first
    return not (first.may_preempt and first.request.priority > one.priority)


def shortest_run(run: int) -> float:
    """Return the shortest run time of a class."""
    return inf if run >= _LONGEST_CLASS else 2.0 ** ((run - 1) / 2) if run > 1 else 0.0


def run_class(seconds: float) -> int:
    """Return the class of a run time: each is longer than the one before by a half octave."""
    return min(_LONGEST_CLASS - 1, 1 + int(2 * log2(max(1.0, seconds))))
