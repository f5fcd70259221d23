"""Decisions made true, and gangs through their life.

unknown ──Place──▶ allocated ──last member ended──▶ unknown
   │                  ▲  │ chosen as a victim
   └──Preempt──▶ preempting ▼
        │  ▲      being preempted ──members ended──▶ unknown
        │  └ victims left      └──preemption cancelled──▶ allocated
        └──its members gone, spoilt, overtaken or expired──▶ unknown
"""

from collections.abc import Sequence

from extender.cells.gangs import Gang, Slot
from extender.cells.model import (
    OPPORTUNISTIC,
    Decision,
    MemberRequest,
    Place,
    Preempt,
    Reject,
    Seat,
    Wait,
)
from extender.cells.placing import slot_placement
from extender.cells.registry import Registry
from extender.cells.table import Table
from extender.cells.tree import Cell
from extender.cells.vcs import Claim
from policy.errors import ConflictError
from policy.submission import GangKey, PodUid


class Lives:
    """Gangs as they come, change and go."""

    def __init__(self, table: Table, registry: Registry, *, lease_seconds: float) -> None:
        self._table = table
        self._registry = registry
        self._lease_seconds = lease_seconds
        self._born = 0
        self.gang_of: dict[PodUid, GangKey] = {}

    # -- decisions

    def apply(self, decision: Decision, *, now: float) -> None:
        """Make a decision true; ConflictError, and nothing changed, if it is out of date."""
        match decision:
            case Place():
                self._check_current(decision)
                self._clear(decision.cancelled)
                for key in decision.downgraded:
                    self.downgrade(self._table.gangs[key], by=decision.request.gang)
                self._apply_place(decision, now)
            case Preempt():
                self._check_current(decision)
                self._clear(decision.cancelled)
                self._apply_preempt(decision, now)
            case Wait(cancels_own=True):
                self._give_up(decision.request)
            case Wait() | Reject():
                pass

    def _check_current(self, decision: Place | Preempt) -> None:
        """A decision must have been planned on the present state."""
        gone = [key for key in decision.cancelled if key not in self._table.gangs]
        if isinstance(decision, Place):
            gone += [key for key in decision.downgraded if key not in self._table.gangs]
        victims = decision.victims if isinstance(decision, Preempt) else ()
        leaves = [leaf for seat in decision.seats for leaf in self._leaves(seat)]
        taken = [
            leaf.address
            for leaf in leaves
            if (leaf.holder is not None and leaf.holder.key not in victims)
            or (leaf.reserver is not None and leaf.reserver.key not in decision.cancelled)
        ]
        if gone or taken:
            names = ", ".join([*map(str, gone), *taken])
            raise ConflictError(f"decision about {decision.request.gang} is out of date: {names}")

    def _leaves(self, seat: Seat) -> tuple[Cell, ...]:
        by_address = self._table.trees[seat.chain].by_address
        return tuple(by_address[address] for address in seat.leaves)

    def _clear(self, keys: Sequence[GangKey]) -> None:
        for key in keys:
            self.cancel(self._table.gangs[key])

    def _give_up(self, request: MemberRequest) -> None:
        """What was reserved for a member is of no use any more."""
        gang = self._table.gangs[request.gang]
        if gang.is_preempting:
            self.end(gang)
        else:
            self._withdraw(gang, request.member)

    def _apply_place(self, decision: Place, now: float) -> None:
        request = decision.request
        gang = self._table.gangs.get(request.gang)
        if gang is None:
            gang = self.begin(request, is_guaranteed=self._is_guaranteed(request))
        gang.lease_expires = now + self._lease_seconds
        if gang.is_preempting:
            self._settle(gang)
        elif decision.seats:
            self._withdraw(gang, request.member)
        for seat in decision.seats:
            self._seat(gang, seat)
        if gang.slot_of(request.member) is None:
            new = gang.slots[-len(decision.seats)] if decision.seats else None
            self._take(gang, new or _slot_at(gang, decision), request.member)

    def _take(self, gang: Gang, slot: Slot, member: PodUid) -> None:
        """A member takes a slot, perhaps one whose victims are gone."""
        if slot.is_reserved:
            self._occupy(gang, slot)
            gang.asking.pop(member, None)
        self.assign(gang, slot, member)

    def _apply_preempt(self, decision: Preempt, now: float) -> None:
        request = decision.request
        gang = self._table.gangs.get(request.gang)
        if gang is None and decision.seats:
            gang = self.begin(request, is_guaranteed=True)
        elif gang is not None and decision.seats:
            self._withdraw(gang, request.member)
        for seat in decision.seats:
            assert gang is not None
            self._seat(gang, seat, is_reserved=True)
        if gang is not None and gang.reserved_slots(request.leaf_count):
            gang.lease_expires = now + self._lease_seconds
            gang.asking[request.member] = request.leaf_count
            self._registry.note_reserving(gang)
            self.gang_of[request.member] = gang.key

    def _seat(self, gang: Gang, seat: Seat, *, is_reserved: bool = False) -> None:
        leaves, claim = self._leaves(seat), self._claim(gang, seat)
        self._table.seat(gang, Slot(leaves, len(leaves), claim, is_reserved=is_reserved))

    def _claim(self, gang: Gang, seat: Seat) -> Claim | None:
        """The preassigned cell of a seat, mapped now if it is not yet."""
        if seat.claim is None or not gang.is_guaranteed:
            return None
        cell = self._table.trees[seat.chain].by_address[seat.claim]
        return cell.claim or self._table.map_cell(self._table.vcs[gang.request.vc], cell)

    def _settle(self, gang: Gang) -> None:
        """The victims are gone: what was reserved is held."""
        for slot in gang.slots:
            self._occupy(gang, slot)
        self._stop_asking(gang)

    def _occupy(self, gang: Gang, slot: Slot) -> None:
        slot.is_reserved = False
        self._table.hold(slot.leaves, gang)
        self._table.reserve(slot.leaves, None)

    def _stop_asking(self, gang: Gang) -> None:
        for member in gang.asking:
            self.gang_of.pop(member, None)
        gang.asking.clear()

    def _withdraw(self, gang: Gang, member: PodUid) -> None:
        """A member does not wait any more: what was reserved for it is given up."""
        size = gang.asking.pop(member, None)
        if size is None:
            return
        self.gang_of.pop(member, None)
        slots = gang.reserved_slots(size)
        if slots and not gang.is_preempting:
            self._table.unseat(gang, slots[0])

    def _is_guaranteed(self, request: MemberRequest) -> bool:
        return request.priority != OPPORTUNISTIC and not self._table.is_open

    # -- gangs

    def begin(
        self,
        request: MemberRequest,
        *,
        is_guaranteed: bool,
        is_foreign: bool = False,
    ) -> Gang:
        """A gang becomes known."""
        self._born += 1
        gang = Gang(
            key=request.gang,
            request=request,
            born=self._born,
            is_guaranteed=is_guaranteed,
            is_foreign=is_foreign,
        )
        self._table.gangs[gang.key] = gang
        self._registry.add(gang)
        return gang

    def adopt(self, gang: Gang) -> Gang:
        """Begin a gang that another engine knew, without its slots."""
        is_guaranteed = (
            self._is_guaranteed(gang.request) and gang.downgraded_by is None and not gang.is_foreign
        )
        mine = self.begin(gang.request, is_guaranteed=is_guaranteed, is_foreign=gang.is_foreign)
        mine.born, mine.lease_expires = gang.born, gang.lease_expires
        mine.downgraded_by = gang.downgraded_by
        self._born = max(self._born, gang.born)
        return mine

    def end(self, gang: Gang) -> None:
        """A gang is forgotten; all it has is free, or its preemptor's."""
        for slot in gang.slots:
            if slot.member is not None:
                self.gang_of.pop(slot.member, None)
        self._stop_asking(gang)
        self._table.release(gang)
        self._registry.remove(gang)
        del self._table.gangs[gang.key]

    def cancel(self, gang: Gang) -> None:
        """A gang does not preempt any more; what it holds already it keeps."""
        if gang.is_preempting:
            self.end(gang)
        else:
            self._stop_asking(gang)
            self._table.withdraw(gang)

    def downgrade(self, gang: Gang, *, by: GangKey) -> None:
        """Make a gang opportunistic where it is."""
        self._registry.remove(gang)
        self._table.downgrade(gang)
        gang.downgraded_by = by
        self._registry.add(gang)

    def assign(self, gang: Gang, slot: Slot, member: PodUid) -> None:
        """A member takes a slot."""
        slot.member = member
        slot.had_member = True
        self.gang_of[member] = gang.key

    def forget_member(self, member: PodUid) -> None:
        """A member ended, was deleted, or will not ask again."""
        key = self.gang_of.pop(member, None)
        if key is None:
            return
        gang = self._table.gangs[key]
        self._withdraw(gang, member)
        slot = gang.slot_of(member)
        if slot is not None and (gang.keeps_slots() and slot.leaves):
            slot.member, slot.is_bound = None, False
        elif slot is not None:
            self._table.unseat(gang, slot)
        if not gang.has_members() and not gang.asking:
            self.end(gang)

    def expire(self, *, now: float) -> list[GangKey]:
        """End the leases that were not used in time; returns the gangs that lost something."""
        expired = [
            gang
            for _, gang in sorted(self._table.gangs.items())
            if gang.lease_expires <= now and (gang.is_preempting or _unused(gang))
        ]
        for gang in expired:
            self._end_lease(gang)
        return [gang.key for gang in expired]

    def _end_lease(self, gang: Gang) -> None:
        self.cancel(gang)
        for slot in _unused(gang):
            if slot.member is not None:
                self.gang_of.pop(slot.member, None)
            self._table.unseat(gang, slot)
        if gang.key in self._table.gangs and not gang.has_members():
            self.end(gang)


def _slot_at(gang: Gang, decision: Place) -> Slot:
    """The slot of a gang where a decision puts a member."""
    size = decision.request.leaf_count
    slots = [*gang.open_slots(size), *gang.reserved_slots(size)]
    return next(slot for slot in slots if slot_placement(slot) == decision.placement)


def _unused(gang: Gang) -> list[Slot]:
    """Slots that are only leased: never taken, or their member is not bound yet."""
    return [
        slot
        for slot in gang.slots
        if (slot.member is None and not slot.had_member)
        or (slot.member is not None and not slot.is_bound)
    ]
