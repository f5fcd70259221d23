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
are lost, which happens F times in all. After D reserved cells that are in use may be exchanged for
free ones; the gangs that hold reserved cells are then fewer of the same. So each window of 2R + ε
after s + H starts one of the n gangs that can be ahead of j, or j, or is one of the F windows that
ended in a loss. If backfill relies on enforced limits only, no gang is late, and 2R becomes R.

Without stickiness there is no bound: gangs that run longer than predicted move the shadow time on
and on. There is none either for opportunistic gangs, whose cells other gangs may take at any time,
and where run times have no limit; owners are told so.

The leader's loop must not be blocked, so that one step searches at most one shadow time, and a gang
without a result is left out for a while.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from math import inf

from extender.cells.freed_cells import FreedCells
from extender.cells.model import OPPORTUNISTIC, ReasonCode, Shadow
from extender.queue.lines.shapes import Pool
from extender.queue.member_places import unplaced
from extender.queue.model import StepResult
from extender.queue.order.ranking import Ranking
from extender.queue.ports import Cells, Nodes, RunTimes
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.gaps import Gaps
from extender.queue.reserve.model import Reservation, ReservationEnd, Slip, SlipCause
from extender.queue.reserve.shadow_times import ShadowTimes
from extender.queue.seen_gangs import SeenGangs
from extender.queue.waiting_gangs import WaitingGangs
from policy.queues.queues import DEFAULT_LONGEST, Queues
from policy.submission import GangKey, NodeName, VcName

_REVIEW_SECONDS = 1.0
_RETRY_SECONDS = 30.0
"""How long a gang is left out that has no shadow time."""
_UNUSED_SECONDS = 60.0
"""How long cells stay reserved that are free and not used, or whose gang does not wait."""
_LOOKS = 4
"""The best ranked gangs of a pool that are looked at for a reservation."""
_LEAST_SLIP_SECONDS = 30.0
"""A start that is put off by less is no slip."""
_WAITS_FOR_CELLS = frozenset(
    {
        ReasonCode.NO_ROOM,
        ReasonCode.VC_FULL,
        ReasonCode.BAD_CELLS,
        ReasonCode.FOREIGN_USE,
        ReasonCode.SEARCH_ENDED,
        ReasonCode.RESERVED,
        ReasonCode.PREEMPTING,  # of a gang that may not preempt
    }
)


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
        self._shadows = ShadowTimes(cells, nodes, run_times, ranking=ranking)
        self._seen = seen
        self._waiting = waiting
        self._ranking = ranking
        self._of: dict[GangKey, Reservation] = {}
        self._idle_since: dict[GangKey, float] = {}
        """Reservations of which no gang makes use, and since when."""
        self._retry_at: dict[GangKey, float] = {}
        """Gangs without a shadow time, and when it is searched again."""
        self._lost: dict[GangKey, tuple[NodeName, ...]] = {}
        """Reservations that need other cells, and the nodes that they lost."""
        self._freed: set[VcName | None] = set()
        """The domains in which cells became free since the last step."""
        self._review_at = 0.0
        self.gaps = Gaps(
            cells, run_times, seen=seen, waiting=waiting, ranking=ranking, in_force=self.in_force
        )
        """Which other gangs may use reserved cells."""
        self._changed: dict[tuple[GangKey, float], Reservation] = {}
        """By gang and when they were made."""
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
        self._changed.clear()
        for gang in {**known, **self._of}:
            self._note_change(gang)

    def note_placed(self, gang: GangKey) -> None:
        """A gang has its places."""
        self._finish(gang, ReservationEnd.STARTED)

    def note_gone(self, gang: GangKey) -> None:
        """A gang has no pods any more."""
        self._finish(gang, ReservationEnd.GONE)
        self._retry_at.pop(gang, None)

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

    def in_force(self) -> list[Reservation]:
        """Return all reservations, the oldest first."""
        return list(self._of.values())

    # -- steps

    def update(self, step: StepResult) -> None:
        """Review the reservations, make or move at most one, and report what has changed."""
        if self._now >= self._review_at:
            self._review_at = self._now + _REVIEW_SECONDS
            for one in list(self._of.values()):
                self._review(one)
            self.gaps.classify_again()
        self._search_one(step)
        step.reservations, self._changed = list(self._changed.values()), {}
        step.backfilled = self.gaps.take_backfilled()

    def gather(self) -> None:
        """Exchange reserved cells that are in use for free ones, once the deadline is over.

        Otherwise a gang that runs much longer than expected would keep the reservation waiting,
        while other gangs get the cells that become free meanwhile.
        """
        freed, self._freed = self._freed, set()
        for one in [one for one in self._of.values() if one.domain in freed]:
            gang = self._seen.find(one.gang)
            if self._now >= one.deadline and gang is not None:
                self._gather(one, gang)

    def _gather(self, one: Reservation, gang: QueuedGang) -> None:
        holders = self._cells.view_seats(one.domain, one.kept).holders
        if not holders or not self._shadows.is_ready(gang):
            return
        shadow = self._shadows.find(gang, beside=self._of.values(), ending=holders)
        if shadow is None:
            return
        left = self._cells.view_seats(one.domain, (*shadow.seats, *shadow.drained)).holders
        if set(left) < set(holders):
            self._put(_on_cells(one, shadow))
            self._waiting.wake()

    def _review(self, one: Reservation) -> None:
        """End a reservation that is of no use, and note whether its promise can be kept."""
        if self._waiting.pool(one.gang) is None:
            self._end_if_idle(one, ReservationEnd.NOT_WAITING)
            return
        if not self._queues.reservation.sticky and not self._is_head(one):
            self._finish(one.gang, ReservationEnd.OUTRANKED)
            return
        gang = self._seen.find(one.gang)
        if gang is not None and not gang.has_reservation:  # its pods were seen after a take-over
            self._note_change(one.gang)
        view = self._cells.view_seats(one.domain, one.kept)
        if view.lost:
            self._lost[one.gang] = view.lost
        elif not view.holders:
            self._end_if_idle(one, ReservationEnd.UNUSED)
        else:
            self._idle_since.pop(one.gang, None)
            self._check_promise(one, view.holders)

    def _end_if_idle(self, one: Reservation, end: ReservationEnd) -> None:
        since = self._idle_since.setdefault(one.gang, self._now)
        if self._now - since >= _UNUSED_SECONDS:
            self._retry_at[one.gang] = self._now + self._queues.reservation.after
            self._finish(one.gang, end)

    def _check_promise(self, one: Reservation, holders: Collection[GangKey]) -> None:
        """Put the promised start off if it is over and gangs still hold reserved cells."""
        if one.promised is None or self._now < one.promised:
            return
        last, end = self._shadows.ends.in_order(holders, now=self._now)[-1]
        promised = end if end < inf else None
        if promised is not None and promised - one.promised < _LEAST_SLIP_SECONDS:
            return
        slip = Slip(
            at=self._now,
            before=one.promised,
            promised=promised,
            cause=SlipCause.OVERRUN,
            gang=last,
        )
        self._put(replace(one, promised=promised, waits_for=last, slips=(*one.slips, slip)))

    # -- making and moving

    def _search_one(self, step: StepResult) -> None:
        """Search one shadow time: for a reservation that lost cells, else for a new one."""
        for key in list(self._lost):
            gang, nodes = self._seen.find(key), self._lost.pop(key)
            if key in self._of and gang is not None:
                if self._shadows.is_prepared(gang, step):
                    self._move(self._of[key], gang, nodes)
                return
        for pool in self._waiting.pools() if self.is_open else ():
            head = self._next_head(pool)
            if head is not None:
                if self._shadows.is_prepared(head, step):
                    self._make(head, pool)
                return

    def _next_head(self, pool: Pool) -> QueuedGang | None:
        """Return the gang of a pool that is to get a reservation now.

        Gangs that wait for something else than cells, or that would not fit, are passed over.
        """
        rules = self._queues.reservation
        held = sum(one.pool == pool for one in self._of.values())
        if held >= rules.per_pool:
            return None
        for key in self._waiting.first_of(pool, held + _LOOKS):
            gang = self._seen.find(key)
            if gang is not None and self._may_reserve(gang):
                return gang if self._now - gang.first.asked >= rules.after else None
        return None

    def _may_reserve(self, gang: QueuedGang) -> bool:
        """Tell whether a gang waits for cells, and none are reserved for it."""
        if gang.key in self._of or self._now < self._retry_at.get(gang.key, 0.0):
            return False
        is_new = not gang.has_begun and not gang.victims
        return is_new and _waits_for_cells(gang) and bool(unplaced(gang, self._cells))

    def _is_head(self, one: Reservation) -> bool:
        return one.gang in self._waiting.first_of(one.pool, self._queues.reservation.per_pool)

    def _make(self, gang: QueuedGang, pool: Pool) -> None:
        shadow = self._shadows.find(gang, beside=self._of.values())
        if shadow is None or shadow.waits_for is None or _is_vain(gang, shadow):
            self._retry_at[gang.key] = self._now + _RETRY_SECONDS
            return
        promised = _known(shadow.time)
        self._put(
            Reservation(
                gang=gang.key,
                pool=pool,
                domain=self._cells.domain(gang.first.request),
                priority=gang.first.request.priority,
                seats=shadow.seats,
                drained=shadow.drained,
                nodes=shadow.nodes,
                made_at=self._now,
                first_promised=promised,
                promised=promised,
                deadline=self._deadline(shadow.time),
                waits_for=shadow.waits_for,
            )
        )
        self._note_change(gang.key)

    def _move(self, one: Reservation, gang: QueuedGang, nodes: tuple[NodeName, ...]) -> None:
        """Reserve other cells for a gang that lost some."""
        shadow = self._shadows.find(gang, beside=self._of.values())
        if shadow is None:
            self._retry_at[one.gang] = self._now + _RETRY_SECONDS
            self._finish(one.gang, ReservationEnd.NO_ROOM)
            return
        promised = _known(shadow.time)
        slip = Slip(
            at=self._now,
            before=one.promised,
            promised=promised,
            cause=SlipCause.CELLS_LOST,
            gang=shadow.waits_for,
            nodes=nodes,
        )
        self._put(
            replace(
                _on_cells(one, shadow),
                domain=self._cells.domain(gang.first.request),
                deadline=self._deadline(shadow.time),
                slips=(*one.slips, slip),
            )
        )
        self._waiting.wake()

    def _deadline(self, shadow: float) -> float:
        """Return the time before which other gangs must end on reserved cells.

        Where no end is known, no gang begins there any more.
        """
        longest = self._queues.run_time.longest
        bound = max(longest.values()) if DEFAULT_LONGEST in longest else inf
        deadline = min(shadow, self._now + bound)
        return deadline if deadline < inf else self._now

    def _put(self, one: Reservation) -> None:
        self._of[one.gang] = one
        self._changed[one.gang, one.made_at] = one

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
        self._idle_since.pop(gang, None)
        self._changed[gang, one.made_at] = replace(one, end=end, ended_at=self._now)
        self._note_change(gang)
        self._waiting.wake()


def _on_cells(one: Reservation, shadow: Shadow) -> Reservation:
    """Return a reservation with other cells."""
    return replace(
        one,
        seats=shadow.seats,
        drained=shadow.drained,
        nodes=shadow.nodes,
        promised=_known(shadow.time),
        waits_for=shadow.waits_for,
    )


def _is_vain(gang: QueuedGang, shadow: Shadow) -> bool:
    """Tell whether cells would stay idle for an opportunistic gang for an unknown time.

    Guaranteed gangs may take them at any time, so that a reservation gives it no bound.
    """
    return gang.first.request.priority == OPPORTUNISTIC and shadow.time == inf


def _waits_for_cells(gang: QueuedGang) -> bool:
    return gang.noticed is not None and gang.noticed.code in _WAITS_FOR_CELLS


def _known(time: float) -> float | None:
    return time if time < inf else None
