"""Which gangs have a reservation, and when it is made, moved and ended.

Theorem. A *pool* is what gangs compete for: a VC, a leaf type, a pinned cell. Let gang j of a pool
ask at time s and let H be the horizon of its level, so that no gang which asks after s + H is ever
ahead of j (`policy.queues.queues`). Assume that

1. j fits its pool when the pool is empty;
2. every run ends within R, by a limit that is enforced;
3. j is charged and not held, and uses its lease within ε;
4. reserved cells are lost F times;
5. no gang of a higher priority than j's preempts in the pool;
6. the best ranked gang of the pool that waits has a *sticky* reservation: concrete cells and the
   deadline D = min(shadow time, t + R), t being when it was made. It is kept even if the gang is
   outranked, and no gang of the pool that may still run at D begins on these cells.

Then j waits at most W = H + (n + 1 + F)(2R + ε), where n is the number of gangs of the pool that
asked before s + H and have not started when j asks.

Proof sketch. Consider one reservation, made at t. Gangs that were expected to end before D may be
late, but they began before D, so they have ended by D + R; after D no gang begins on these cells.
Since D <= t + R, the cells are free by t + 2R, and their gang starts by t + 2R + ε, or its cells
are lost, which happens F times in all. Reserved cells that are in use may be exchanged for free
ones: D does not become later, and the gangs that hold reserved cells are some of the same. After D
they may be exchanged for cells of other gangs that began before D: these, too, have ended by D + R.
So each window of 2R + ε after s + H starts one of the n gangs that can be ahead of j, or j, or is
one of the F windows that ended in a loss. If backfill relies on enforced limits only, no gang is
late, and 2R becomes R.

Pools of one VC share cells where a gang names no leaf type. Reservations have no cell in common,
and the best ranked head is served first; while others leave it no room, no gang behind it gets one
(`turns`). So n counts the gangs of all pools that share cells with j's.

Each window of the document that concerns cells of j (see `advance`) adds its length and 2R + ε.

Without stickiness there is no bound: gangs that run longer than predicted move the shadow time on
and on. There is none either for opportunistic gangs, whose cells other gangs may take at any time,
and where run times have no limit; owners are told so.

The leader's loop must not be blocked, so that one step searches at most one shadow time, and a gang
without a result is left out for a while.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from math import inf

from extender.cells.freed_cells import FreedCells
from extender.queue.model import StepResult
from extender.queue.order.ranking import Ranking
from extender.queue.ports import Cells, Nodes, RunTimes
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.advance import AdvanceReservations, ReservationBook
from extender.queue.reserve.calendar import Calendar
from extender.queue.reserve.defragmentation import Defragmentation
from extender.queue.reserve.gaps import Gaps
from extender.queue.reserve.gathering import gather
from extender.queue.reserve.model import (
    FoundCells,
    Reservation,
    ReservationChange,
    ReservationEnd,
    ReservationStep,
)
from extender.queue.reserve.shadow_times import ShadowTimes
from extender.queue.reserve.steps import (
    LEAST_SLIP_SECONDS,
    gathered_on,
    known_time,
    made,
    moved,
    on_cells,
    overrun,
)
from extender.queue.reserve.turns import Turns
from extender.queue.reserve.useful_cells import awaited, is_vain, suits, surplus
from extender.queue.seen_gangs import SeenGangs
from extender.queue.waiting_gangs import WaitingGangs
from policy.queues.queues import Queues
from policy.submission import GangKey, NodeName, VcName

_REVIEW_SECONDS = 1.0
_UNUSED_SECONDS = 60.0
"""How long cells stay reserved that are free and not used, or whose gang does not wait."""
_BACK_SECONDS = 10.0
"""A clock that goes back by less is corrected all the time."""


class Reservations:
    """The reservations in force, and those that have changed since they were last reported."""

    def __init__(
        self,
        cells: Cells,
        nodes: Nodes,
        run_times: RunTimes,
        *,
        seen: SeenGangs,
        waiting: WaitingGangs,
        ranking: Ranking,
    ) -> None:
        self._cells = cells
        self.calendar = Calendar(run_times, ranking)
        """The windows of the document."""
        self._shadows = ShadowTimes(cells, nodes, run_times, calendar=self.calendar)
        self._seen = seen
        self._waiting = waiting
        self._turns = Turns(cells, waiting=waiting, seen=seen, ranking=ranking)
        self._ranking = ranking
        self._of: dict[GangKey, Reservation] = {}
        self._idle_since: dict[GangKey, float] = {}
        """Reservations of which no gang makes use, and since when."""
        self._lost: dict[GangKey, tuple[NodeName, ...]] = {}
        """Reservations that need other cells, and the nodes that they lost."""
        self._late: dict[GangKey, None] = {}
        """Reservations whose promise slipped: there may be better cells."""
        self._freed: set[VcName | None] = set()
        """The domains in which cells became free since the last step."""
        self._review_at = 0.0
        self._followed: Queues | None = None
        """The document by which gangs were last planned."""
        self.gaps = Gaps(cells, self.calendar, seen=seen, waiting=waiting, in_force=self.in_force)
        """Which other gangs may use reserved cells."""
        ranking.on_reorder = self.gaps.cover_again
        self._advance = AdvanceReservations(
            cells,
            nodes,
            shadows=self._shadows,
            calendar=self.calendar,
            seen=seen,
            book=ReservationBook(self.in_force, self.put, self._finish, self._check_promise),
        )
        self.moves = Defragmentation(
            cells, nodes, run_times, seen=seen, ranking=ranking, reservations=self
        )
        """Which other gangs could run elsewhere."""
        self._changed: dict[tuple[GangKey, float], Reservation] = {}
        """By gang and when they were made."""
        self.on_change: Callable[[ReservationChange], None] = lambda _: None
        """Called with each change at once, before anything else changes."""
        self.is_open = True
        """Whether reservations may be made: not before those of earlier leaders are known."""

    @property
    def _now(self) -> float:
        """The last time that the planner was told, in seconds since 1970."""
        return self._ranking.now

    @property
    def _queues(self) -> Queues:
        return self._ranking.order.queues

    # -- reports

    def restore(self, reservations: Iterable[Reservation]) -> None:
        """Take over the reservations of an earlier leader, in place of all that are known."""
        known, self._of = self._of, {one.gang: one for one in reservations}
        self.gaps.note_cells()
        for one in self._of.values():
            self.on_change(self._change(one, ReservationStep.TAKEN_OVER))
        for gang in {**known, **self._of}:
            self._note_change(gang)

    def note_placed(self, gang: GangKey) -> None:
        """A gang has its places."""
        self.gaps.note_cells()
        self.gaps.started.setdefault(gang, self._now)
        self._finish(gang, ReservationEnd.STARTED)

    def note_gone(self, gang: GangKey) -> None:
        """A gang has no pods any more."""
        self._finish(gang, ReservationEnd.GONE)
        self.gaps.started.pop(gang, None)
        self._turns.forget(gang)

    def note_freed(self, freed: FreedCells | None) -> None:
        """Leaf cells became free; None: others joined or changed."""
        known = {one.domain for one in self._of.values()}
        self._freed |= known if freed is None else known & {freed.vc}

    # -- questions

    def __contains__(self, gang: GangKey) -> bool:
        return gang in self._of

    def find(self, gang: GangKey) -> Reservation | None:
        """Return the reservation of a gang."""
        return self._of.get(gang)

    def expected_end(self, gang: GangKey) -> float | None:
        """Return when a gang that runs is expected to end; None if that is unknown."""
        return known_time(self._shadows.ends.of(gang, now=self._now))

    def in_force(self) -> list[Reservation]:
        """Return all reservations, the oldest first."""
        return list(self._of.values())

    # -- steps

    def update(self, step: StepResult) -> None:
        """Review the reservations, make or move at most one, and report what has changed."""
        if not 0.0 < self._review_at - self._now <= _REVIEW_SECONDS:  # a clock may go back
            self._review_at = self._now + _REVIEW_SECONDS
            for one in list(self._of.values()):
                self._review(one)
            for gang in surplus(self._of.values(), per_pool=self._queues.reservation.per_pool):
                self._finish(gang, ReservationEnd.TOO_MANY)
            self.gaps.classify_again()
        self._search_one(step)
        self.moves.update(step)
        step.reservations, self._changed = list(self._changed.values()), {}
        step.backfilled = self.gaps.take_backfilled()

    def gather(self) -> None:
        """Exchange reserved cells that are in use for cells that became free."""
        if self._advance.follow_calendar() or self._queues is not self._followed:
            self._followed = self._queues
            self._waiting.wake()  # runs may count as shorter, or need no minimum any more
        self.gaps.note_cells()
        freed, self._freed = self._freed, set()
        for one in [one for one in self._of.values() if one.domain in freed]:
            gang = self._seen.find(one.gang)
            if gang is not None and self._shadows.is_ready(gang):
                found = gather(
                    one, gang, cells=self._cells, shadows=self._shadows, beside=self._of.values()
                )
                if found is not None:  # what it leaves, if anything, became free just now
                    after = gathered_on(one, found.shadow)
                    self._note(self._change(after, ReservationStep.GATHERED, found))

    def _review(self, one: Reservation) -> None:
        """End a reservation that is of no use, and note whether its promise can be kept."""
        if one.entry is not None:
            return self._advance.review(one)
        pool, gang = self._waiting.pool(one.gang), self._seen.find(one.gang)
        if pool is None or gang is None:
            return self._end_if_idle(one, ReservationEnd.NOT_WAITING)
        if one.made_at > self._now + _BACK_SECONDS:
            return self._finish(one.gang, ReservationEnd.WRONG_CLOCK)
        if pool != one.pool or not suits(one, gang, self._cells):
            return self._finish(one.gang, ReservationEnd.CHANGED)
        if gang.first.request.priority != one.priority:  # its class has another one now
            one = replace(one, priority=gang.first.request.priority)
            self.put(one, ReservationStep.RERANKED)
        if not self._queues.reservation.sticky and not self._is_head(one):
            self._finish(one.gang, ReservationEnd.OUTRANKED)
            return
        if not gang.has_reservation:  # its pods were seen after a take-over
            self._note_change(one.gang)
        view = self._cells.view_seats(one.domain, one.kept)
        if view.lost:
            self._lost[one.gang] = view.lost
        elif not view.holders:
            self._end_if_idle(one, ReservationEnd.UNUSED)
        else:
            self._idle_since.pop(one.gang, None)
            self._check_promise(one, awaited(gang, view.holders, self._cells))

    def _end_if_idle(self, one: Reservation, end: ReservationEnd) -> None:
        since = min(self._idle_since.get(one.gang, self._now), self._now)
        self._idle_since[one.gang] = since
        if self._now - since >= _UNUSED_SECONDS:
            self._turns.note_unused(one.gang)
            self._finish(one.gang, end)

    def _check_promise(self, one: Reservation, holders: Collection[GangKey]) -> None:
        """Put the promised start off if it is over and gangs still hold reserved cells."""
        if one.promised is None or self._now < one.promised or not holders:
            return
        ends = tuple(self._shadows.ends.in_order(holders, now=self._now))
        late = overrun(one, ends, now=self._now)
        if late is not None:
            self.put(late, ReservationStep.SLIPPED, ends=ends)
            self._late[one.gang] = None

    # -- making and moving

    def _search_one(self, step: StepResult) -> None:
        """Search one shadow time: for a reservation that lost cells, else for a new one."""
        for key in list(self._lost):
            gang, nodes = self._seen.find(key), self._lost.pop(key)
            if key in self._of and gang is not None:
                if self._shadows.is_prepared(gang, step):
                    self._move(self._of[key], gang, nodes)
                return
        if self._exchange_one(step) or (self.is_open and self._advance.search_one(step)):
            return
        head = self._turns.next(self._of) if self.is_open else None
        if head is not None and self._shadows.is_prepared(head, step):
            self._make(head)

    def _exchange_one(self, step: StepResult) -> bool:
        """Exchange cells of one reservation that is late; tell whether there was one."""
        for key in list(self._late):
            gang, one = self._seen.find(key), self._of.get(key)
            if one is None or gang is None:
                del self._late[key]
            elif self._shadows.is_prepared(gang, step):
                del self._late[key]
                self._exchange(one, gang)
                return True
        return False

    def _is_head(self, one: Reservation) -> bool:
        return one.gang in self._waiting.first_of(one.pool, self._queues.reservation.per_pool)

    def _make(self, gang: QueuedGang) -> None:
        found = self._shadows.find(gang, beside=self._of.values())
        if found is None or found.shadow.waits_for is None or is_vain(gang, found.shadow):
            is_alone = found is not None or not self._of
            is_blocked = not is_alone and self._shadows.find(gang, beside=()) is not None
            self._turns.note_refused(gang.key, is_blocked=is_blocked)
            return
        domain = self._cells.domain(gang.first.request)
        one = made(found, domain=domain, longest=self._queues.run_time.longest)
        self._turns.note_made(gang.key, one.pool)
        self.put(one, ReservationStep.MADE, found)
        self._note_change(gang.key)

    def _move(self, one: Reservation, gang: QueuedGang, nodes: tuple[NodeName, ...]) -> None:
        """Reserve other cells for a gang that lost some."""
        found = self._shadows.find(gang, beside=self._of.values())
        if found is None:
            self._turns.note_refused(one.gang)
            self._finish(one.gang, ReservationEnd.NO_ROOM)
            return
        domain, longest = self._cells.domain(gang.first.request), self._queues.run_time.longest
        after = moved(one, found, domain=domain, lost=nodes, longest=longest)
        self.put(after, ReservationStep.MOVED, found)

    def _exchange(self, one: Reservation, gang: QueuedGang) -> None:
        """Reserve other cells for a gang whose start was put off, if it can start sooner there."""
        started = self.gaps.started
        old = [
            key for key in self._cells.holders(one.domain) if started.get(key, inf) <= one.deadline
        ]
        found = self._shadows.find(gang, beside=self._of.values(), ending=old)
        last = inf if one.promised is None else one.promised
        if found is not None and found.shadow.time < last - LEAST_SLIP_SECONDS:
            self.put(on_cells(one, found.shadow), ReservationStep.EXCHANGED, found)

    def put(
        self,
        one: Reservation,
        step: ReservationStep,
        found: FoundCells | None = None,
        *,
        ends: tuple[tuple[GangKey, float], ...] = (),
    ) -> None:
        """Make or change a reservation; what it leaves may help others."""
        before = self._of.get(one.gang)
        self._note(self._change(one, step, found, ends=ends))
        if before is not None and before.kept != one.kept:
            self._wake_bound(before)

    def _note(self, change: ReservationChange) -> None:
        one = change.after
        self._of[one.gang] = self._changed[one.gang, one.made_at] = one
        self.gaps.note_cells()
        self.on_change(change)

    def _change(
        self,
        one: Reservation,
        step: ReservationStep,
        found: FoundCells | None = None,
        *,
        ends: tuple[tuple[GangKey, float], ...] = (),
    ) -> ReservationChange:
        return ReservationChange(step=step, after=one, at=self._now, found=found, ends=ends)

    def _note_change(self, gang: GangKey) -> None:
        """Make the planner look at a gang again: with a reservation it is planned like no other."""
        known = self._seen.find(gang)
        if known is not None:
            known.has_reservation = gang in self._of
            self._seen.note_change(gang)

    def _finish(self, gang: GangKey, end: ReservationEnd) -> None:
        one = self._of.pop(gang, None)
        if one is None:
            return
        self.gaps.note_cells()
        self._idle_since.pop(gang, None)
        one = self._changed[gang, one.made_at] = replace(one, end=end, ended_at=self._now)
        self.on_change(self._change(one, ReservationStep.ENDED))
        self._turns.note_ended()
        self._note_change(gang)
        self._wake_bound(one)

    def _wake_bound(self, one: Reservation) -> None:
        """Let gangs be planned that left the cells of a reservation alone."""
        minimum_run = self._queues.preemption.minimum_run
        self._waiting.wake_bound(one.domain, others=one.entry is not None or minimum_run > 0)
