"""Gangs through their life: they begin, get members, wait, are downgraded, end.

unknown ──Place──▶ allocated ──last member ended──▶ unknown
   │                  ▲  │ chosen as a victim
   └──Preempt──▶ preempting ▼
        │  ▲      being preempted ──members ended──▶ unknown
        │  └ victims left      └──preemption cancelled──▶ allocated
        └──its members gone, spoilt, overtaken or expired──▶ unknown
"""

from collections.abc import Mapping, Sequence

from extender.cells.model import OPPORTUNISTIC, MemberRequest
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang
from extender.cells.state.registry import Registry
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Claim
from policy.submission import GangKey, PodUid


class GangLifecycle:
    """Gangs as they come, change and go."""

    def __init__(self, table: AllocationTable, registry: Registry) -> None:
        self._table = table
        self._registry = registry
        self._last_sequence_number = 0
        self.gang_of: dict[PodUid, GangKey] = {}

    def is_guaranteed(self, request: MemberRequest) -> bool:
        """True if a gang that asks for this counts on cells of its VC."""
        return request.priority != OPPORTUNISTIC and not self._table.is_open

    def begin(self, request: MemberRequest, *, is_guaranteed: bool) -> PlacedGang:
        """A gang becomes known."""
        self._last_sequence_number += 1
        gang = PlacedGang(request.gang, request, self._last_sequence_number, is_guaranteed)
        self._table.gangs[gang.key] = gang
        self._registry.add(gang)
        return gang

    def adopt(self, gang: PlacedGang, *, is_guaranteed: bool) -> PlacedGang:
        """Begin a gang that another engine knew, without its slots."""
        mine = self.begin(gang.request, is_guaranteed=is_guaranteed)
        mine.sequence_number, mine.lease_expires = gang.sequence_number, gang.lease_expires
        mine.downgraded_by = gang.downgraded_by
        self._last_sequence_number = max(self._last_sequence_number, gang.sequence_number)
        return mine

    def end(self, gang: PlacedGang) -> None:
        """A gang is forgotten; all it has is free, or its preemptor's."""
        for slot in gang.slots:
            if slot.member is not None:
                self.gang_of.pop(slot.member, None)
        self.stop_asking(gang)
        self._table.release(gang)
        self._registry.remove(gang)
        del self._table.gangs[gang.key]

    def cancel(self, gang: PlacedGang) -> None:
        """A gang does not preempt any more; what it holds already it keeps."""
        self.stop_asking(gang)
        self._table.withdraw(gang)
        self.end_if_empty(gang)

    def downgrade(self, gang: PlacedGang, *, by: GangKey) -> None:
        """Make a gang opportunistic where it is."""
        self.stop_asking(gang)
        self._registry.remove(gang)
        self._table.downgrade(gang)
        gang.downgraded_by = by
        self._registry.add(gang)

    def promote(self, gang: PlacedGang, claims: Mapping[MemberSlot, Claim]) -> None:
        """Make a gang guaranteed again, where it is."""
        self._registry.remove(gang)
        self._table.promote(gang, claims)
        gang.downgraded_by = None
        self._registry.add(gang)

    # -- members

    def assign(self, gang: PlacedGang, slot: MemberSlot, member: PodUid) -> None:
        """A member takes a slot."""
        slot.member = member
        slot.had_member = True
        self.gang_of[member] = gang.key
        if slot.is_ending:
            self._registry.note_ending(gang)
        self._note_whether_ending(gang)

    def take(self, gang: PlacedGang, slot: MemberSlot, member: PodUid) -> None:
        """A member takes a slot, perhaps one whose victims are gone."""
        if slot.is_reserved:
            self._occupy(gang, slot)
        gang.waiting_members.pop(member, None)
        self.assign(gang, slot, member)

    def ask(self, gang: PlacedGang, member: PodUid, size: int) -> None:
        """A member waits for what its gang has reserved."""
        gang.waiting_members[member] = size
        self.gang_of[member] = gang.key
        self._registry.note_reserving(gang)

    def settle(self, gang: PlacedGang) -> None:
        """The victims are gone: what was reserved is held."""
        for slot in gang.slots:
            self._occupy(gang, slot)
        self.stop_asking(gang)

    def _occupy(self, gang: PlacedGang, slot: MemberSlot) -> None:
        slot.is_reserved = False
        self._table.changes.record(gang)
        self._table.hold(slot.leaves, gang)
        self._table.reserve(slot.leaves, None)

    def stop_asking(self, gang: PlacedGang) -> None:
        """No member waits for what its gang has reserved any more."""
        for member in gang.waiting_members:
            self.gang_of.pop(member, None)
        gang.waiting_members.clear()

    def withdraw(self, gang: PlacedGang, member: PodUid) -> None:
        """A member does not wait any more: what was reserved for it is given up."""
        reserved = gang.reserved_for(member)
        if gang.waiting_members.pop(member, None) is not None:
            self.gang_of.pop(member, None)
        if reserved is not None:
            self._table.unseat(gang, reserved)

    def forget_member(self, member: PodUid) -> None:
        """A member ended, was deleted, or will not ask again."""
        key = self.gang_of.pop(member, None)
        if key is None:
            return
        gang = self._table.gangs[key]
        self.withdraw(gang, member)
        slot = gang.slot_of(member)
        if slot is not None and _waits_for_replacement(gang, slot):
            slot.member, slot.is_bound, slot.reported_devices, slot.is_ending = (
                None,
                False,
                (),
                False,
            )
            self._note_whether_ending(gang)
        elif slot is not None:
            self._table.unseat(gang, slot)
        self.end_if_empty(gang)

    def observe_ending(self, member: PodUid) -> bool:
        """A member that runs was told to end; False if none of that is new."""
        return self._turn(member, is_ending=True)

    def observe_overdue(self, member: PodUid) -> bool:
        """A member that was told to end takes too long; False if none of that is new."""
        return self._turn(member, is_ending=False)

    def _turn(self, member: PodUid, *, is_ending: bool) -> bool:
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

    def _note_whether_ending(self, gang: PlacedGang) -> None:
        """A member began to end, came or went: a gang may be ending now, or not any more."""
        if self._registry.has_ending_member(gang):
            self._table.changes.record(gang)

    def give_up(self, gang: PlacedGang, slot: MemberSlot) -> None:
        """A slot that nobody is bound to is needed otherwise; its member has to ask again."""
        if slot.member is not None:
            self.gang_of.pop(slot.member, None)
        self._table.unseat(gang, slot)
        self.end_if_empty(gang)

    def end_if_empty(self, gang: PlacedGang) -> None:
        """A gang lost something: it ends with its last member, and may be foreign from now on."""
        if not gang.has_members() and not gang.waiting_members:
            self.end(gang)
            return
        self.refresh(gang)
        if gang.is_foreign:
            for slot in gang.slots:
                self.withdraw_blocked(gang, slot.leaves)

    def refresh(self, gang: PlacedGang) -> None:
        """A gang got or lost members."""
        self._registry.refresh(gang)

    def withdraw_blocked(self, gang: PlacedGang, leaves: Sequence[Cell]) -> None:
        """Give up preemptions that wait for leaves which this gang has and need not give."""
        reservers = dict.fromkeys(leaf.reserver for leaf in leaves if leaf.reserver is not None)
        for reserver in sorted(reservers, key=lambda reserver: reserver.key):
            if not gang.may_be_ended_for(reserver.request):
                self.cancel(reserver)

    # -- leases

    def expire(self, *, now: float) -> list[GangKey]:
        """End the leases that were not used in time; returns the gangs that lost something."""
        expired = [
            gang
            for _, gang in sorted(self._table.gangs.items())
            if gang.lease_expires <= now and _unused(gang)
        ]
        for gang in expired:
            # What ends here may have been in the way of one that comes later: then that is gone.
            if self._table.gangs.get(gang.key) is gang:
                self._end_lease(gang)
        return [gang.key for gang in expired]

    def _end_lease(self, gang: PlacedGang) -> None:
        self.stop_asking(gang)
        for slot in _unused(gang):
            if slot.member is not None:
                self.gang_of.pop(slot.member, None)
            self._table.unseat(gang, slot)
        self.end_if_empty(gang)


def _waits_for_replacement(gang: PlacedGang, slot: MemberSlot) -> bool:
    if not gang.keeps_slots() or not slot.leaves or slot.is_foreign or slot.missing_leaves:
        return False
    members = gang.request.gang_leaf_counts.count(slot.size)
    return sum(other.size == slot.size for other in gang.slots) <= members


def _unused(gang: PlacedGang) -> list[MemberSlot]:
    """Slots that are only reserved or leased: never taken, or their member is not bound yet."""
    return [
        slot
        for slot in gang.slots
        if (slot.member is None and not slot.had_member)
        or (slot.member is not None and not slot.is_bound)
    ]
