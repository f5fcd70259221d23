"""The states of a gang, from its first decision to the end of its last member.

unknown ──Place──▶ allocated ──last member ended──▶ unknown
   │                  ▲  │ chosen as a victim
   └──Preempt──▶ preempting ▼
        │  ▲      being preempted ──members ended──▶ unknown
        │  └ victims ended     └──preemption cancelled──▶ allocated
        └──members deleted, cells bad, overtaken, or lease expired──▶ unknown
"""

from collections.abc import Mapping, Sequence

from extender.cells.model import MemberRequest
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang, sorted_by_key
from extender.cells.state.registry import Registry
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Claim
from policy.submission import GangKey, PodUid


class GangLifecycle:
    """Begins and ends gangs, gives slots to their members, and expires leases."""

    def __init__(self, table: AllocationTable, registry: Registry) -> None:
        self._table = table
        self._registry = registry
        self._last_sequence_number = 0
        self.gang_of: dict[PodUid, GangKey] = {}
        """Members that have a slot or wait for a reserved one."""

    def begin(self, request: MemberRequest, *, is_guaranteed: bool) -> PlacedGang:
        """Create a gang without slots."""
        self._last_sequence_number += 1
        gang = PlacedGang(request.gang, request, self._last_sequence_number, is_guaranteed)
        self._table.gangs[gang.key] = gang
        self._registry.add(gang)
        return gang

    def adopt(self, gang: PlacedGang, *, is_guaranteed: bool) -> PlacedGang:
        """Create a gang like one of another table, without its slots."""
        mine = self.begin(gang.request, is_guaranteed=is_guaranteed)
        mine.sequence_number, mine.lease_expires = gang.sequence_number, gang.lease_expires
        mine.downgraded_by, mine.breaks_budget = gang.downgraded_by, gang.breaks_budget
        self.set_minimum_run(mine.key, gang.minimum_run)
        self._last_sequence_number = max(self._last_sequence_number, gang.sequence_number)
        return mine

    def restore(self, gang: PlacedGang, *, waiting: Mapping[PodUid, int]) -> None:
        """Register a gang again after its slots were restored; it counts as younger than others."""
        self._registry.remove(gang)
        self._table.gangs[gang.key] = gang
        gang.waiting_members = dict(waiting)
        members = (slot.member for slot in gang.slots if slot.member is not None)
        self.gang_of.update(dict.fromkeys([*members, *waiting], gang.key))
        self._registry.add(gang)
        if gang.reserved_slots():
            self._registry.note_reserving(gang)

    def end(self, gang: PlacedGang) -> None:
        """Remove a gang; its leaves become free, or go to the gangs that reserved them."""
        self.stop_waiting(gang)
        for slot in list(gang.slots):
            self.drop_slot(gang, slot)
        self._registry.remove(gang)
        del self._table.gangs[gang.key]

    def cancel_preemption(self, gang: PlacedGang) -> None:
        """Cancel the preemption of a gang; it keeps what it holds."""
        self.stop_waiting(gang)
        self._table.remove_reserved_slots(gang)
        self.end_if_empty(gang)

    def downgrade(self, gang: PlacedGang, *, by: GangKey) -> None:
        """Make a gang opportunistic on the same leaves."""
        self.stop_waiting(gang)
        self._registry.remove(gang)
        self._table.downgrade(gang)
        gang.downgraded_by = by
        self._registry.add(gang)

    def promote(self, gang: PlacedGang, claims: Mapping[MemberSlot, Claim]) -> None:
        """Make a gang guaranteed on the same leaves."""
        self._registry.remove(gang)
        self._table.promote(gang, claims)
        gang.downgraded_by = None
        self._registry.add(gang)

    # -- members

    def assign(self, gang: PlacedGang, slot: MemberSlot, member: PodUid) -> None:
        """Give a slot to a member."""
        gang.slots.set_member(slot, member)
        slot.had_member = True
        self.gang_of[member] = gang.key
        if slot.is_ending:
            self._registry.note_ending(gang)
        self._note_whether_ending(gang)

    def take_slot(self, gang: PlacedGang, slot: MemberSlot, member: PodUid) -> None:
        """Give a slot to a member; if it is reserved, its victims must have ended."""
        if slot.is_reserved:
            self._occupy(gang, slot)
            gang.waiting_members.pop(member, None)
        else:
            self.cancel_wait(gang, member)  # what is reserved for it is not needed any more
        self.assign(gang, slot, member)

    def wait_for_victims(self, gang: PlacedGang, member: PodUid, size: int) -> None:
        """Register a member that waits for a reserved slot of its gang."""
        gang.waiting_members[member] = size
        self.gang_of[member] = gang.key
        self._registry.note_reserving(gang)

    def occupy_reserved(self, gang: PlacedGang) -> None:
        """Turn all reserved slots of a gang into held ones after its victims have ended."""
        for slot in gang.slots:
            self._occupy(gang, slot)
        self.stop_waiting(gang)

    def _occupy(self, gang: PlacedGang, slot: MemberSlot) -> None:
        if slot.is_reserved:
            gang.slots.occupy(slot)
            self._table.count_taken(slot, slot.held_count)
        self._table.changes.record(gang)
        self._table.hold(slot.leaves, gang)
        self._table.reserve(slot.leaves, None)

    def stop_waiting(self, gang: PlacedGang) -> None:
        """Unregister all members that wait for reserved slots of a gang."""
        for member in gang.waiting_members:
            self.gang_of.pop(member, None)
        gang.waiting_members.clear()

    def cancel_wait(self, gang: PlacedGang, member: PodUid) -> None:
        """Unregister a member that waits, and give up the slot that is reserved for it."""
        reserved = gang.reserved_for(member)
        if gang.waiting_members.pop(member, None) is not None:
            self.gang_of.pop(member, None)
        if reserved is not None:
            self._table.remove_slot(gang, reserved)

    def forget_member(self, member: PodUid) -> None:
        """Take in that a member ended or was deleted, also while it waited."""
        key = self.gang_of.pop(member, None)
        if key is None:
            return
        gang = self._table.gangs[key]
        self.cancel_wait(gang, member)
        slot = gang.slot_of(member)
        if slot is not None and _waits_for_replacement(gang, slot):
            gang.slots.set_member(slot, None)
            slot.is_bound, slot.reported_devices, slot.is_ending = False, (), False
            self._note_whether_ending(gang)
        elif slot is not None:
            self._table.remove_slot(gang, slot)
        self.end_if_empty(gang)

    def set_ending(self, member: PodUid, *, is_ending: bool) -> bool:
        """Set whether a bound member is ending; False if it is not bound or nothing changes."""
        key = self.gang_of.get(member)
        if key is None:
            return False
        gang = self._table.gangs[key]
        slot = gang.slot_of(member)
        if slot is None or not slot.is_bound or slot.is_ending == is_ending:
            return False
        slot.is_ending = is_ending
        self._registry.note_ending(gang)
        self._note_whether_ending(gang)
        return True

    def set_breaks_budget(self, key: GangKey, *, breaks: bool) -> bool:
        """Set whether a gang's end breaks a budget; False if it is unknown or nothing changes."""
        gang = self._table.gangs.get(key)
        if gang is None or gang.breaks_budget == breaks:
            return False
        gang.breaks_budget = breaks
        self._table.changes.record(gang)
        return True

    def set_minimum_run(self, key: GangKey, seconds: int) -> bool:
        """Set how long a gang must run before its VC may end it, 0 once it has.

        False if it is unknown or nothing changes.
        """
        gang = self._table.gangs.get(key)
        if gang is None or gang.minimum_run == seconds:
            return False
        gang.minimum_run = seconds
        self._registry.note_minimum_run(gang)
        self._table.changes.record(gang)
        return True

    def _note_whether_ending(self, gang: PlacedGang) -> None:
        """Record a gang as changed if it may have started or ceased to be ending."""
        if self._registry.has_ending_member(gang):
            self._table.changes.record(gang)

    def drop_slot(self, gang: PlacedGang, slot: MemberSlot) -> None:
        """Remove a slot; its member, if any, has no place any more."""
        if slot.member is not None:
            self.gang_of.pop(slot.member, None)
        self._table.remove_slot(gang, slot)

    def give_up(self, gang: PlacedGang, slot: MemberSlot) -> None:
        """Remove a slot without a bound member; the gang ends if this was its last member."""
        self.drop_slot(gang, slot)
        self.end_if_empty(gang)

    def end_if_empty(self, gang: PlacedGang) -> None:
        """Update a gang that lost members: it may end, or may have become foreign."""
        if not gang.has_members() and not gang.waiting_members:
            self.end(gang)
            return
        self.refresh(gang)
        if gang.is_kept:
            for slot in gang.slots:
                self.cancel_blocked_preemptions(gang, slot.leaves)

    def refresh(self, gang: PlacedGang) -> None:
        """Update the registry after a gang got or lost members."""
        self._registry.refresh(gang)

    def cancel_blocked_preemptions(self, gang: PlacedGang, leaves: Sequence[Cell]) -> None:
        """Cancel preemptions that wait for leaves of a gang that they may not end."""
        for reserver in sorted_by_key(leaf.reserver for leaf in leaves):
            if not gang.may_be_ended_for(reserver.request):
                self.cancel_preemption(reserver)

    # -- leases

    def expire(self, *, now: float) -> list[GangKey]:
        """End the leases that were not used in time; returns the gangs that lost slots."""
        expired = [
            gang
            for _, gang in sorted(self._table.gangs.items())
            if gang.lease_expires <= now and _unused(gang)
        ]
        for gang in expired:
            # Ending an earlier gang of the list may have ended this one, too.
            if self._table.gangs.get(gang.key) is gang:
                self._end_lease(gang)
        return [gang.key for gang in expired]

    def _end_lease(self, gang: PlacedGang) -> None:
        self.stop_waiting(gang)
        for slot in _unused(gang):
            self.drop_slot(gang, slot)
        self.end_if_empty(gang)


def _waits_for_replacement(gang: PlacedGang, slot: MemberSlot) -> bool:
    if not gang.keeps_slots() or not slot.leaves or slot.is_foreign or slot.missing_leaves:
        return False
    return gang.slots.count(slot.size) <= gang.member_count(slot.size)


def _unused(gang: PlacedGang) -> list[MemberSlot]:
    """Slots that are only leased or reserved: without a member so far, or with an unbound one."""
    return [
        slot
        for slot in gang.slots
        if (slot.member is None and not slot.had_member)
        or (slot.member is not None and not slot.is_bound)
    ]
