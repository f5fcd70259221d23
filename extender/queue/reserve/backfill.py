"""Decisions about gangs beside the reservations of others.

A gang leaves alone what is reserved for other gangs of its *domain*: the VC whose cells it uses, or
all opportunistic gangs. It is planned as usual first. If it gets a place, it is planned again with
the reserved cells, and what they count against, left out. Only where it then has no place may it
use reserved cells, and only if it is expected to end before the deadline of their reservation.

Beyond its domain a reservation binds no gang, so VC safety is untouched: guaranteed gangs of other
VCs merely try other nodes first, and opportunistic gangs may use the cells, from which they can be
preempted, unless too little time is left for a minimum run.

An *advance reservation* is a reservation like others, whose owner is an entry of the document. It
does not bind the gangs that the entry names: these try its nodes first. Once it has begun, it binds
opportunistic gangs, too. Nodes of a *maintenance window* are closed to every gang that may still
run when the window begins.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Protocol

from extender.cells.model import (
    Decision,
    MemberRequest,
    Place,
    Preempt,
    ReasonCode,
    Seat,
    TriedForms,
    Victims,
    Wait,
    WindowNote,
    Withheld,
)
from extender.queue.member_places import decide_unplaced, preview_unplaced, refusal, unplaced
from extender.queue.model import QueuedPod
from extender.queue.ports import Cells, Nodes
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.calendar import Closed, note_of
from extender.queue.reserve.model import Reservation
from extender.queue.reserve.nodes_within import NodesWithin
from extender.queue.room_search import Choice, RoomSearch
from policy.submission import GangKey, NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What reservations mean for one gang."""

    binding: tuple[Reservation, ...] = ()
    """Reservations of other gangs of its domain."""
    closed: Mapping[NodeName, Withheld] = field(default_factory=dict)
    """Nodes that it may not use, since a reservation is due soon, and for what it is made."""
    avoided: tuple[NodeName, ...] = ()
    """Nodes that it uses only if no others suit."""
    ends_at: float | None = None
    """When it would end if it started now; None if that is unknown."""
    counts_until: float = inf
    """Until when it counts as running at windows: an unknown end is assumed."""
    own: tuple[NodeName, ...] = ()
    """Nodes with cells that are reserved in advance for gangs such as it: they are tried first."""
    maintained: Closed = field(default_factory=dict)
    """Nodes that it may not use because of a maintenance window."""

    notes: Mapping[str, WindowNote] = field(default_factory=dict)
    """What it is told of advance reservations, by name."""

    def note_of(self, one: Reservation) -> Withheld:
        """Return for what the gang is told that it waits, because of a reservation."""
        return one.gang if one.entry is None else self.notes[one.entry]

    @property
    def kept(self) -> tuple[Seat, ...]:
        """The cells that it leaves alone."""
        return kept_of(self.binding)

    @property
    def strict(self) -> tuple[Reservation, ...]:
        """The reservations that it would run into."""
        return tuple(one for one in self.binding if not self._ends_before(one))

    def _ends_before(self, one: Reservation) -> bool:
        if one.entry is not None:
            return self.counts_until <= one.deadline
        return self.ends_at is not None and self.ends_at <= one.deadline

    @property
    def victims_that_count(self) -> Victims:
        """Which victims to look for where the reservations are not respected.

        A gang may not preempt for cells that are reserved for another one. So it only matters
        whether it could, unless the chains of its victims decide for which gang they are reserved.
        """
        chains = {seat.chain for one in self.binding for seat in one.seats}
        is_only_asked = len(chains) == 1 and all(one.entry is None for one in self.binding)
        return Victims.ANY if is_only_asked else Victims.BEST

    def reserved_for(self, decision: Place | Preempt) -> Reservation:
        """Return the reservation that a decision would break: the first in one of its chains."""
        chains = {seat.chain for seat in decision.seats}
        near = [one for one in self.binding if any(seat.chain in chains for seat in one.seats)]
        return min(near or self.binding, key=lambda one: (one.deadline, one.gang))

    def allows(self, decision: Place | Preempt) -> bool:
        """Tell whether the gang ends before the cells that it gets are needed."""
        one = self.reserved_for(decision)
        may_use = isinstance(decision, Place) or one.entry is not None
        return may_use and self._ends_before(one)


def kept_of(reservations: Iterable[Reservation]) -> tuple[Seat, ...]:
    """Return the cells of some reservations."""
    return tuple(seat for one in reservations for seat in one.kept)


FREE = Guard()
"""No reservation concerns the gang."""


class Guards(Protocol):
    """The reservations, as far as planning a gang depends on them."""

    def guard(self, gang: QueuedGang) -> Guard:
        """Return what reservations mean for a gang that is planned now."""

    def note_backfill(self, gang: GangKey, reservation: Reservation) -> None:
        """Note that a gang uses reserved cells meanwhile."""


def decide_beside(
    gang: QueuedGang,
    guards: Guards,
    *,
    cells: Cells,
    nodes: Nodes,
    now: float,
    tried: TriedForms | None = None,
) -> list[Decision]:
    """Decide about the members of a gang that have no place, beside the reservations of others."""
    search = GuardedSearch(
        gang, unplaced(gang, cells), guard=guards.guard(gang), cells=cells, nodes=nodes, now=now
    )
    search.tried = tried
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
        self._nodes = nodes

        def search(nodes: Nodes, closed: Collection[NodeName]) -> RoomSearch:
            return RoomSearch(
                gang,
                members,
                cells=cells,
                nodes=nodes,
                now=now,
                closed=closed,
                avoided=guard.avoided,
            )

        self._search = search
        self._free = search(nodes, (*guard.closed, *guard.maintained))
        self.backfills: Reservation | None = None
        """The reservation whose cells the gang uses meanwhile."""
        self.tried: TriedForms | None = None
        """The forms of the gang that were tried before."""

    def choose(self, request: MemberRequest) -> Choice:
        """Decide about a member and, if its gang has no place yet, about all of them."""
        if self._guard.maintained or self._guard.own:
            request = replace(request, ignores_candidates=False)  # or nodes could not be left out
        choice = self._choose_own(request) or self._choose_beside(request)
        if isinstance(choice.decision, Wait) and choice.facts.reserved_for is None:
            choice = self._explained(request, choice)
        if self.tried is None:
            return choice
        return replace(choice, facts=replace(choice.facts, tried=self.tried))

    def _choose_own(self, request: MemberRequest) -> Choice | None:
        """Use cells that are reserved in advance for gangs such as this one, if it fits there."""
        if not self._guard.own:
            return None
        own = self._search(NodesWithin(self._nodes, self._guard.own), (*self._guard.maintained,))
        choice = own.choose(request, self._guard.kept)
        return choice if isinstance(choice.decision, Place) else None

    def _choose_beside(self, request: MemberRequest) -> Choice:
        kept, victims = self._guard.kept, self._guard.victims_that_count
        choice = self._free.choose(request, victims=victims)
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
        return self._choose_before(request) or _withheld(beside, self._guard.note_of(breaks))

    def _choose_before(self, request: MemberRequest) -> Choice | None:
        """Use cells of those reservations before which the gang ends, if there are others, too."""
        strict = self._guard.strict
        earlier = [one for one in self._guard.binding if one not in strict]
        if not strict or not earlier:
            return None
        choice = self._free.choose(request, kept_of(strict))
        if not isinstance(choice.decision, Place):
            return None
        self.backfills = earlier[0]
        return choice

    def _explained(self, request: MemberRequest, choice: Choice) -> Choice:
        """Name a window or a reservation if the gang could start, or preempt, but for that."""
        what = self._found_in_maintenance(request)
        if what is None and _has_room_elsewhere(choice.decision):
            what = self._found_due(request) or self._found_by_any(request)
        return choice if what is None else _withheld(choice, what)

    def _found_in_maintenance(self, request: MemberRequest) -> Withheld | None:
        if not self._guard.maintained:
            return None
        search = self._search(self._nodes, self._guard.closed)
        return self._window_of(search.choose(request, self._guard.kept).decision)

    def _window_of(self, decision: Decision) -> Withheld | None:
        maintained = self._guard.maintained
        node = min((node for node in _nodes_of(decision) if node in maintained), default=None)
        return None if node is None else note_of(maintained[node], node)

    def _found_due(self, request: MemberRequest) -> Withheld | None:
        """Find a reservation that is due soon and alone keeps the gang from starting."""
        if not self._guard.closed:
            return None
        search = self._search(self._nodes, (*self._guard.maintained,))
        return self._due_of(search.choose(request, self._guard.kept).decision)

    def _due_of(self, decision: Decision) -> Withheld | None:
        closed = self._guard.closed
        node = min((node for node in _nodes_of(decision) if node in closed), default=None)
        return None if node is None else closed[node]

    def _found_by_any(self, request: MemberRequest) -> Withheld | None:
        """Find what keeps the gang from starting together with other such things."""
        guard = self._guard
        if not (guard.maintained or guard.closed):
            return None
        decision = self._search(self._nodes, ()).choose(request).decision
        return self._window_of(decision) or self._due_of(decision)


def _has_room_elsewhere(decision: Decision) -> bool:
    """Whether a gang waits although there is room on nodes that it may not use."""
    return isinstance(decision, Wait) and decision.reason.code is ReasonCode.NODE_NOT_OFFERED


def _withheld(choice: Choice, what: Withheld) -> Choice:
    """Say for what cells are withheld from a gang that waits."""
    return replace(choice, facts=replace(choice.facts, reserved_for=what))


def _nodes_of(decision: Decision) -> Iterable[NodeName]:
    match decision:
        case Place(placement=own, others=others):
            return [one.node for one in (own, *others)]
        case Preempt(nodes=nodes):
            return nodes
    return ()
