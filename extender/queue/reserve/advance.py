"""Advance reservations: reservations whose owner is an entry of the Queues document.

An entry gets concrete cells as soon as the document has it, those that are expected to be free
first, and keeps them like any other reservation until its time is over. Its deadline is when it
begins: gangs that it does not name use its cells only if they are expected to end before. If gangs
of the VC still hold them then, that is a slip, and other cells that are free are taken instead.
Opportunistic gangs are no slip: a gang that the entry names preempts them.

What windows add to the bound on waiting of `reservations`. Let windows concern cells that gang j
needs: maintenance of their nodes, or advance reservations that do not name j. The window i lasts
L(i). Then j waits at most W + Σ(L(i) + 2R + ε). A head gets no cells that it may still use when a
window begins, and no longer than 2R passes between the first time that this keeps j from a
reservation, or from starting on reserved cells, and the beginning. During the window j waits.
Afterwards one more reservation starts j or a gang ahead of it. Without a limit, `runTime.longest`,
or else `runTime.cap`, stands for R of j.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from extender.cells.model import OPPORTUNISTIC, MemberRequest
from extender.queue.model import StepResult
from extender.queue.ports import Cells, Nodes
from extender.queue.reserve.calendar import Calendar
from extender.queue.reserve.model import (
    FoundCells,
    Reservation,
    ReservationEnd,
    ReservationStep,
    entry_key,
)
from extender.queue.reserve.shadow_times import ShadowTimes
from extender.queue.reserve.steps import exchanged_for, made_for, moved_for
from extender.queue.seen_gangs import SeenGangs
from policy.queues.pools import Pool
from policy.queues.windows import AdvanceReservation
from policy.submission import GangKey, NodeName, PodUid

_RETRY_SECONDS = 30.0
"""How long an entry without room is left out, and how often late cells are exchanged."""


@dataclass(frozen=True, slots=True)
class ReservationBook:
    """The reservations of gangs and entries together, and how they are changed."""

    in_force: Callable[[], list[Reservation]]
    put: Callable[[Reservation, ReservationStep, FoundCells | None], None]
    finish: Callable[[GangKey, ReservationEnd], None]
    check_promise: Callable[[Reservation, Collection[GangKey]], None]
    """Notes a slip if gangs still hold cells when their use was promised."""


class AdvanceReservations:
    """Makes, moves and ends the reservations of the document's entries."""

    def __init__(
        self,
        cells: Cells,
        nodes: Nodes,
        *,
        shadows: ShadowTimes,
        calendar: Calendar,
        seen: SeenGangs,
        book: ReservationBook,
    ) -> None:
        self._cells = cells
        self._nodes = nodes
        self._shadows = shadows
        self._calendar = calendar
        self._seen = seen
        self._book = book
        self._retry_at: dict[str, float] = {}
        """Entries that have no room, or late cells, and when a search is of use again."""
        self._lost: dict[str, tuple[NodeName, ...]] = {}

    # -- making and moving

    def search_one(self, step: StepResult) -> bool:
        """Search cells for one entry that has none, or lost some; tell whether there was one."""
        now = self._calendar.now
        known = {one.entry: one for one in self._book.in_force() if one.entry is not None}
        for entry in self._calendar.queues.reservations:
            is_missing = entry.name not in known or entry.name in self._lost
            if is_missing and now < entry.ends and not self._is_put_off(entry):
                if self._shadows.is_request_prepared(_request(entry), step):
                    self._find_cells(entry, known.get(entry.name))
                return True
        return False

    def _is_put_off(self, entry: AdvanceReservation) -> bool:
        """Tell whether a search is of no use yet; the clock may have gone back meanwhile."""
        left = self._retry_at.get(entry.name, 0.0) - self._calendar.now
        return 0.0 < left <= _RETRY_SECONDS

    def _find_cells(self, entry: AdvanceReservation, before: Reservation | None) -> None:
        lost = self._lost.pop(entry.name, ())
        found = self._search(entry)
        if found is None:
            self._retry_at[entry.name] = self._calendar.now + _RETRY_SECONDS
            if before is not None:
                self._book.finish(before.gang, ReservationEnd.NO_ROOM)
        elif before is None:
            self._book.put(made_for(entry, found), ReservationStep.MADE, found)
        else:
            after = moved_for(before, entry, found, lost=lost)
            self._book.put(after, ReservationStep.MOVED, found)

    def _search(
        self, entry: AdvanceReservation, *, ending: Collection[GangKey] | None = None
    ) -> FoundCells | None:
        key, now = entry_key(entry.name), self._calendar.now
        closed = self._calendar.closed_between(max(now, entry.begins), entry.ends)
        return self._shadows.search(
            _request(entry),
            [one for one in self._book.in_force() if one.gang != key],
            ending=ending,
            nodes=self._nodes.suiting((), without=closed),
        )

    # -- reviewing

    def follow_calendar(self) -> bool:
        """Review all entries if other windows apply than before; tell whether that is so."""
        if not self._calendar.has_changed():
            return False
        for one in [one for one in self._book.in_force() if one.entry is not None]:
            self.review(one)
        return True

    def review(self, one: Reservation) -> None:
        """End a reservation whose time is over, and name the gangs that are late."""
        entry = self._calendar.entry(one.entry or "")
        if entry is None or not _is_for(one, entry):
            self._retry_at.pop(one.entry or "", None)
            self._book.finish(one.gang, ReservationEnd.WITHDRAWN)
        elif self._calendar.now >= entry.ends:
            self._book.finish(one.gang, ReservationEnd.OVER)
        else:
            self._review_cells(one, entry)

    def _review_cells(self, one: Reservation, entry: AdvanceReservation) -> None:
        view = self._cells.view_seats(one.domain, one.kept)
        if view.lost:
            self._lost[entry.name] = view.lost
            return
        late = self._late(entry, view.holders)
        if late and self._calendar.now >= entry.begins and not self._exchange(one, entry, late):
            self._book.check_promise(one, late)

    def _exchange(self, one: Reservation, entry: AdvanceReservation, late: list[GangKey]) -> bool:
        """Take free cells instead of cells that late gangs hold; tell whether there are any."""
        if self._is_put_off(entry):
            return False
        self._retry_at[entry.name] = self._calendar.now + _RETRY_SECONDS
        if not self._cells.is_ready(_request(entry)):
            return False
        found = self._search(entry, ending=late)
        if found is None:
            return False
        after = exchanged_for(one, entry, found)
        holders = self._cells.view_seats(after.domain, after.kept).holders
        is_better = set(self._late(entry, holders)) < set(late)
        if is_better:
            self._book.put(after, ReservationStep.EXCHANGED, found)
        return is_better

    def _late(self, entry: AdvanceReservation, holders: Iterable[GangKey]) -> list[GangKey]:
        """Return the guaranteed gangs among some that the entry does not name."""
        return [
            gang
            for gang in holders
            if self._cells.victim_priority(gang) != OPPORTUNISTIC and not self._names(entry, gang)
        ]

    def _names(self, entry: AdvanceReservation, key: GangKey) -> bool:
        gang = self._seen.find(key)
        known = gang is not None and bool(gang.pods)
        return known and gang is not None and entry.name in self._calendar.covered(gang)


def _request(entry: AdvanceReservation) -> MemberRequest:
    return MemberRequest(
        member=PodUid(""),
        gang=entry_key(entry.name),
        leaf_count=entry.leaf_cells,
        gang_leaf_counts=(entry.leaf_cells,) * entry.members,
        leaf_type=entry.leaf_type,
        vc=entry.vc,
    )


def _is_for(one: Reservation, entry: AdvanceReservation) -> bool:
    """Tell whether a reservation has what its entry asks for now."""
    sizes = [len(seat.leaves) for seat in one.seats]
    has_size = sizes == [entry.leaf_cells] * entry.members
    is_there = one.pool == Pool(entry.vc, entry.leaf_type)
    return has_size and is_there and one.deadline == entry.begins
