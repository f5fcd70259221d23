"""Decisions made true, and gangs through their life.

unknown ──Place──▶ allocated ──last member ended──▶ unknown
   │                  ▲  │ chosen as a victim
   └──Preempt──▶ preempting ▼
        │  ▲      being preempted ──members ended──▶ unknown
        │  └ victims left      └──preemption cancelled──▶ allocated
        └──its members gone, spoilt, overtaken or expired──▶ unknown
"""

from collections.abc import Mapping, Sequence

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
from extender.cells.verifying import check_current, outdated
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
        check_current(self._table, self.gang_of, decision)
        match decision:
            case Place():
                self._apply_place(decision, self._make_room(decision), now)
            case Preempt():
                self._apply_preempt(decision, self._make_room(decision), now)
            case Wait(cancels_own=True):
                self._stop_waiting(decision.request)
            case Wait() | Reject():
                pass

    def _make_room(self, decision: Place | Preempt) -> list[Slot]:
        """Cancel, downgrade and map as decided; returns the new slots, which nobody has yet.

        All of it or, with a ConflictError, nothing: what is mapped now may break a promise that it
        did not break when the decision was planned.
        """
        gangs = self._table.gangs
        downgraded = decision.downgraded if isinstance(decision, Place) else ()
        with self._table.what_if() as trial:
            for key in decision.cancelled:
                self._table.withdraw(gangs[key])
            for key in downgraded:
                self._table.downgrade(gangs[key])
            self._unreserve(decision)
            slots = [self._new_slot(decision, seat) for seat in decision.seats]
            self._check_promises(decision)
            trial.keep()
        for key in decision.cancelled:
            self.cancel(gangs[key])
        for key in downgraded:
            self.downgrade(gangs[key], by=decision.request.gang)
        return slots

    def _unreserve(self, decision: Place | Preempt) -> None:
        """A late member gets another place than the one that is reserved for it."""
        gang = self._table.gangs.get(decision.request.gang)
        reserved = gang.reserved_for(decision.request.member) if gang else None
        if gang is not None and reserved is not None and decision.seats:
            self._table.unseat(gang, reserved)

    def _new_slot(self, decision: Place | Preempt, seat: Seat) -> Slot:
        by_address = self._table.trees[seat.chain].by_address
        leaves, claim = tuple(by_address[address] for address in seat.leaves), None
        if seat.claim is not None:
            claim = self._claim(decision.request, by_address[seat.claim])
        return Slot(leaves, len(leaves), claim, is_reserved=isinstance(decision, Preempt))

    def _claim(self, request: MemberRequest, cell: Cell) -> Claim:
        """The preassigned cell that is mapped to this one, mapped now if it is not yet."""
        vc = self._table.vcs[request.vc]
        if cell.claim is not None:
            if cell.claim.vc == vc.name and cell.claim.virtual.pinned == request.pinned:
                return cell.claim
            raise outdated(request, f"cell {cell.address} is of {cell.claim.address}")
        if not cell.is_unclaimed() or not vc.unused(cell.chain.name, cell.level):
            raise outdated(request, f"VC {vc.name} cannot have cell {cell.address}")
        return self._table.map_cell(vc, cell)

    def _check_promises(self, decision: Place | Preempt) -> None:
        for chain in dict.fromkeys(seat.chain for seat in decision.seats if seat.claim):
            if not self._table.supplies[chain].is_safe():
                raise outdated(decision.request, f"it breaks a promise in chain {chain}")

    def _apply_place(self, decision: Place, slots: Sequence[Slot], now: float) -> None:
        request = decision.request
        gang = self._table.gangs.get(request.gang)
        if gang is None:
            gang = self.begin(request, is_guaranteed=self.is_guaranteed(request))
        gang.lease_expires = now + self._lease_seconds
        if gang.is_preempting:
            self._settle(gang)
        for slot in slots:
            self._table.seat(gang, slot)
        self.refresh(gang)
        if gang.slot_of(request.member) is None:
            self._take(gang, slots[0] if slots else _slot_at(gang, decision), request.member)

    def _take(self, gang: Gang, slot: Slot, member: PodUid) -> None:
        """A member takes a slot, perhaps one whose victims are gone."""
        if slot.is_reserved:
            self._occupy(gang, slot)
        gang.asking.pop(member, None)
        self.assign(gang, slot, member)

    def _apply_preempt(self, decision: Preempt, slots: Sequence[Slot], now: float) -> None:
        request = decision.request
        gang = self._table.gangs.get(request.gang)
        if gang is None and slots:
            gang = self.begin(request, is_guaranteed=True)
        for slot in slots:
            assert gang is not None
            self._table.seat(gang, slot)
        if gang is not None and gang.reserved_slots(request.leaf_count):
            gang.lease_expires = now + self._lease_seconds
            self.ask(gang, request.member, request.leaf_count)

    def ask(self, gang: Gang, member: PodUid, size: int) -> None:
        """A member waits for what its gang has reserved."""
        gang.asking[member] = size
        self.gang_of[member] = gang.key
        self._registry.note_reserving(gang)

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

    def _stop_waiting(self, request: MemberRequest) -> None:
        """What was reserved for a member is of no use any more."""
        gang = self._table.gangs[request.gang]
        if gang.is_preempting:
            self.end(gang)
        else:
            self.withdraw(gang, request.member)
            self._end_if_empty(gang)

    def withdraw(self, gang: Gang, member: PodUid) -> None:
        """A member does not wait any more: what was reserved for it is given up."""
        reserved = gang.reserved_for(member)
        if gang.asking.pop(member, None) is not None:
            self.gang_of.pop(member, None)
        if reserved is not None:
            self._table.unseat(gang, reserved)

    def is_guaranteed(self, request: MemberRequest) -> bool:
        """True if a gang that asks for this counts on cells of its VC."""
        return request.priority != OPPORTUNISTIC and not self._table.is_open

    # -- gangs

    def begin(self, request: MemberRequest, *, is_guaranteed: bool) -> Gang:
        """A gang becomes known."""
        self._born += 1
        gang = Gang(request.gang, request, self._born, is_guaranteed)
        self._table.gangs[gang.key] = gang
        self._registry.add(gang)
        return gang

    def adopt(self, gang: Gang, *, is_guaranteed: bool) -> Gang:
        """Begin a gang that another engine knew, without its slots."""
        mine = self.begin(gang.request, is_guaranteed=is_guaranteed)
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
        self._stop_asking(gang)
        self._table.withdraw(gang)
        self._end_if_empty(gang)

    def downgrade(self, gang: Gang, *, by: GangKey) -> None:
        """Make a gang opportunistic where it is."""
        self._stop_asking(gang)
        self._registry.remove(gang)
        self._table.downgrade(gang)
        gang.downgraded_by = by
        self._registry.add(gang)

    def promote(self, gang: Gang, claims: Mapping[Slot, Claim]) -> None:
        """Make a gang guaranteed again, where it is."""
        self._registry.remove(gang)
        self._table.promote(gang, claims)
        gang.downgraded_by = None
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
        self.withdraw(gang, member)
        slot = gang.slot_of(member)
        if slot is not None and _waits_for_replacement(gang, slot):
            slot.member, slot.is_bound, slot.told = None, False, ()
        elif slot is not None:
            self._table.unseat(gang, slot)
        self._end_if_empty(gang)

    def give_up(self, gang: Gang, slot: Slot) -> None:
        """A slot that nobody is bound to is needed otherwise; its member has to ask again."""
        if slot.member is not None:
            self.gang_of.pop(slot.member, None)
        self._table.unseat(gang, slot)
        self._end_if_empty(gang)

    def _end_if_empty(self, gang: Gang) -> None:
        if not gang.has_members() and not gang.asking:
            self.end(gang)
            return
        self.refresh(gang)
        if gang.is_foreign:
            for slot in gang.slots:
                self.withdraw_blocked(gang, slot.leaves)

    def refresh(self, gang: Gang) -> None:
        """A gang got or lost members."""
        self._registry.refresh(gang)

    def withdraw_blocked(self, gang: Gang, leaves: Sequence[Cell]) -> None:
        """Give up preemptions that wait for leaves which this gang has and need not give."""
        reservers = dict.fromkeys(leaf.reserver for leaf in leaves if leaf.reserver is not None)
        for reserver in sorted(reservers, key=lambda reserver: reserver.key):
            if not gang.may_be_ended_for(reserver.request):
                self.cancel(reserver)

    def expire(self, *, now: float) -> list[GangKey]:
        """End the leases that were not used in time; returns the gangs that lost something."""
        expired = [
            gang
            for _, gang in sorted(self._table.gangs.items())
            if gang.lease_expires <= now and _unused(gang)
        ]
        for gang in expired:
            self._end_lease(gang)
        return [gang.key for gang in expired]

    def _end_lease(self, gang: Gang) -> None:
        self._stop_asking(gang)
        for slot in _unused(gang):
            if slot.member is not None:
                self.gang_of.pop(slot.member, None)
            self._table.unseat(gang, slot)
        self._end_if_empty(gang)


def _slot_at(gang: Gang, decision: Place) -> Slot:
    """The slot that a decision means; `check_current` has found it."""
    size = decision.request.leaf_count
    slots = [*gang.open_slots(size), *gang.reserved_slots(size)]
    return next(slot for slot in slots if slot_placement(slot) == decision.placement)


def _waits_for_replacement(gang: Gang, slot: Slot) -> bool:
    if not gang.keeps_slots() or not slot.leaves or slot.is_foreign or slot.lacking:
        return False
    members = gang.request.gang_leaf_counts.count(slot.size)
    return sum(other.size == slot.size for other in gang.slots) <= members


def _unused(gang: Gang) -> list[Slot]:
    """Slots that are only reserved or leased: never taken, or their member is not bound yet."""
    return [
        slot
        for slot in gang.slots
        if (slot.member is None and not slot.had_member)
        or (slot.member is not None and not slot.is_bound)
    ]
