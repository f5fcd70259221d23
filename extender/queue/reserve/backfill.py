"""Decisions about gangs beside the reservations of others.

A gang leaves alone what is reserved for other gangs of its *domain*: the VC whose cells it uses, or
all opportunistic gangs. It is planned as usual first. If it gets a place, it is planned again with
the reserved cells, and what they count against, left out. Only where it then has no place may it
use reserved cells, and only if it is expected to end before the deadline of their reservation.

Beyond its domain a reservation binds no gang, so VC safety is untouched: guaranteed gangs of other
VCs merely try other nodes first, and opportunistic gangs may use the cells, from which they can be
preempted, unless too little time is left for a minimum run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from extender.cells.model import Decision, MemberRequest, Place, Preempt, Seat
from extender.queue.member_places import decide_unplaced, preview_unplaced, refusal, unplaced
from extender.queue.model import QueuedPod
from extender.queue.ports import Cells, Nodes
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.model import Reservation
from extender.queue.room_search import Choice, RoomSearch
from policy.submission import GangKey, NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What reservations mean for one gang."""

    binding: tuple[Reservation, ...] = ()
    """Reservations of other gangs of its domain."""
    closed: tuple[NodeName, ...] = ()
    """Nodes that it may not use, since their reservation is due soon."""
    avoided: tuple[NodeName, ...] = ()
    """Nodes that it uses only if no others suit."""
    ends_at: float | None = None
    """When it would end if it started now; None if that is unknown."""

    @property
    def kept(self) -> tuple[Seat, ...]:
        """The cells that it leaves alone."""
        return tuple(seat for one in self.binding for seat in one.kept)

    def reserved_for(self, decision: Place | Preempt) -> Reservation:
        """Return the reservation that a decision would break: the first in one of its chains."""
        chains = {seat.chain for seat in decision.seats}
        near = [one for one in self.binding if any(seat.chain in chains for seat in one.seats)]
        return min(near or self.binding, key=lambda one: (one.deadline, one.gang))

    def allows(self, decision: Place | Preempt) -> bool:
        """Tell whether the gang ends before the cells that it gets are needed."""
        is_known = isinstance(decision, Place) and self.ends_at is not None
        return is_known and (self.ends_at or 0.0) <= self.reserved_for(decision).deadline


FREE = Guard()
"""No reservation concerns the gang."""


class Guards(Protocol):
    """The reservations, as far as planning a gang depends on them."""

    def guard(self, gang: QueuedGang) -> Guard:
        """Return what reservations mean for a gang that is planned now."""

    def note_backfill(self, gang: GangKey, reservation: Reservation) -> None:
        """Note that a gang uses reserved cells meanwhile."""


def decide_beside(
    gang: QueuedGang, guards: Guards, *, cells: Cells, nodes: Nodes, now: float
) -> list[Decision]:
    """Decide about the members of a gang that have no place, beside the reservations of others."""
    search = GuardedSearch(
        gang, unplaced(gang, cells), guard=guards.guard(gang), cells=cells, nodes=nodes, now=now
    )
    decisions = decide_unplaced(gang, cells, search, now=now)
    if search.backfills is not None and refusal(decisions) is None:
        guards.note_backfill(gang.key, search.backfills)
    return decisions


def preview_beside(
    gang: QueuedGang, guards: Guards, *, cells: Cells, nodes: Nodes, now: float
) -> Decision:
    """Return what would be decided about a gang now; nothing changes."""
    search = GuardedSearch(
        gang, unplaced(gang, cells), guard=guards.guard(gang), cells=cells, nodes=nodes, now=now
    )
    return preview_unplaced(gang, cells, search)


class GuardedSearch:
    """Decides about the members of one gang that have no place, beside reservations."""

    def __init__(
        self,
        gang: QueuedGang,
        members: Sequence[QueuedPod],
        *,
        guard: Guard,
        cells: Cells,
        nodes: Nodes,
        now: float,
    ) -> None:
        self._guard = guard
        self._free = RoomSearch(
            gang,
            members,
            cells=cells,
            nodes=nodes,
            now=now,
            closed=guard.closed,
            avoided=guard.avoided,
        )
        self.backfills: Reservation | None = None
        """The reservation whose cells the gang uses meanwhile."""

    def choose(self, request: MemberRequest) -> Choice:
        """Decide about a member and, if its gang has no place yet, about all of them."""
        choice, kept = self._free.choose(request), self._guard.kept
        if not kept or not isinstance(choice.decision, Place | Preempt):
            return choice
        if not choice.decision.seats:
            return choice  # places that the gang has already
        beside = self._free.choose(request, kept)
        if isinstance(beside.decision, Place | Preempt):
            return beside
        breaks = self._guard.reserved_for(choice.decision)
        if self._guard.allows(choice.decision):
            self.backfills = breaks
            return choice
        return replace(beside, reserved_for=breaks.gang)
