"""Takes gangs over: after a restart, or on a new topology.

Bound members come first and always get a slot (`PodObserver`). Slots that are only held, leased or
reserved come after them; each keeps exactly its leaves or is given up.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from extender.cells.model import PlacedMember
from extender.cells.observe.bound_pods import PodObserver, agree, incomplete_placement
from extender.cells.observe.counted_leaves import ClaimFinder, find_leaves, named_leaves
from extender.cells.observe.lifecycle import GangLifecycle
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang, slot_placement
from extender.cells.state.tree import Cell
from policy.placement import Placement
from policy.submission import LeafType


class Adopter:
    """Takes over gangs of another table, or of pods that were released before a restart."""

    def __init__(
        self, table: AllocationTable, lifecycle: GangLifecycle, pod_observer: PodObserver
    ) -> None:
        self._table = table
        self._lifecycle = lifecycle
        self._pod_observer = pod_observer
        self._claim_finder = ClaimFinder(table)

    def adopt(self, gangs: Sequence[PlacedGang]) -> None:
        """Take over the slots of gangs; promotes no gang.

        The order matters: earlier gangs claim their cells first.
        """
        for phase in (self.adopt_bound, self.adopt_held, self.adopt_reserved):
            for gang in gangs:
                phase(gang)

    # -- bound members

    def adopt_bound(self, gang: PlacedGang) -> None:
        """Take over the members of a gang that run."""
        for slot in [slot for slot in gang.slots if slot.is_bound]:
            mine = self._table.gangs.get(gang.key) or self._begin(gang)
            where = slot_placement(slot)
            find = partial(
                find_leaves, self._table, size=slot.size, leaf_type=gang.request.leaf_type
            )
            counted = find(where)
            new = replace(slot, leaves=counted.leaves, missing_leaves=counted.missing_leaves)
            new.claim, new.reported_placement = None, incomplete_placement(new, where)
            if new.reported_placement is not None and not new.leaves:
                # Its former leaves are gone: from now on the placement that it reports counts.
                new.missing_leaves = find(new.reported_placement).missing_leaves
            self._pod_observer.add_observed_slot(mine, new, where)
            self._note_member(mine, new)

    def _begin(self, gang: PlacedGang) -> PlacedGang:
        is_guaranteed = self._table.is_guaranteed(gang.request) and gang.downgraded_by is None
        return self._lifecycle.adopt(gang, is_guaranteed=is_guaranteed)

    def _note_member(self, gang: PlacedGang, slot: MemberSlot) -> None:
        if slot.member is not None:
            self._lifecycle.assign(gang, slot, slot.member)
        self._lifecycle.refresh(gang)

    # -- leases

    def adopt_held(self, gang: PlacedGang) -> None:
        """Take over the slots of a gang that it holds without a bound member."""
        for slot in [slot for slot in gang.slots if not slot.is_bound and not slot.is_reserved]:
            self._adopt_lease(gang, slot)
        mine = self._table.gangs.get(gang.key)
        if mine is not None and not mine.has_members():
            self._lifecycle.end(mine)

    def _adopt_lease(self, gang: PlacedGang, slot: MemberSlot) -> None:
        where = slot_placement(slot)
        leaves = self._idle_leaves(where, gang.request.leaf_type) if slot.leaves else None
        if leaves is None:
            return
        mine = self._table.gangs.get(gang.key) or self._begin(gang)
        self._hold(mine, replace(slot, leaves=leaves, claim=None, reported_placement=None), where)

    def lease(self, bound: PlacedMember, *, expires: float) -> bool:
        """Lease the placement of a released pod again; False if it is no longer available."""
        request, known = bound.request, self._lifecycle.gang_of.get(bound.request.member)
        slot = self._leased_slot(bound)
        if known is not None or slot is None or not self._has_need(bound):
            return known == request.gang
        gang = self._table.gangs.get(request.gang) or self._pod_observer.begin(bound)
        gang.lease_expires = max(gang.lease_expires, expires)
        return self._hold(gang, slot, bound.placement)

    def _leased_slot(self, bound: PlacedMember) -> MemberSlot | None:
        """A slot on the leaves of a placement; without leaves if its node is not known yet."""
        request, where = bound.request, bound.placement
        leaves = self._idle_leaves(where, request.leaf_type)
        if leaves is not None:
            return MemberSlot(leaves, len(leaves), member=request.member)
        if not self._table.is_open or self._table.nodes(where.node):
            return None
        slot = MemberSlot((), request.leaf_count, member=request.member)
        slot.reported_placement, slot.missing_leaves = where, request.leaf_count
        return slot

    def _has_need(self, bound: PlacedMember) -> bool:
        """True if a member agrees with its gang, and the gang has too few slots of its size."""
        request, gang = bound.request, self._table.gangs.get(bound.request.gang)
        if len({*bound.placement.leaf_cells}) != request.leaf_count:
            return False
        taken = gang.slots.count(request.leaf_count) if gang else 0
        is_known = gang is None or agree(gang, request)
        return is_known and taken < request.gang_leaf_counts.count(request.leaf_count)

    def _idle_leaves(
        self, placement: Placement, leaf_type: LeafType | None
    ) -> tuple[Cell, ...] | None:
        """All leaves that a placement names; None if a gang holds or reserves one of them."""
        leaves = named_leaves(self._table, placement, leaf_type)
        if not leaves or any(leaf.holder or leaf.reserver for leaf in leaves):
            return None
        return leaves

    def _hold(self, gang: PlacedGang, slot: MemberSlot, placement: Placement) -> bool:
        """Add a leased slot to a gang; False if the gang is guaranteed and has no claim for it."""
        if gang.is_guaranteed:
            slot.claim = self._claim_finder.find(gang.request, slot.leaves, placement)
        if gang.is_guaranteed and slot.claim is None:
            if not gang.slots:
                self._lifecycle.end(gang)
            return False
        self._table.add_slot(gang, slot)
        self._note_member(gang, slot)
        return True

    # -- reservations

    def adopt_reserved(self, gang: PlacedGang) -> None:
        """Take over what a gang has reserved; after everything that others hold."""
        if gang.is_preempting:
            self._adopt_preemption(gang)
        else:
            self._adopt_late(gang)

    def _adopt_preemption(self, gang: PlacedGang) -> None:
        """Continue the preemption of a whole gang if all its slots can be reserved again."""
        if not self._table.is_guaranteed(gang.request):
            return
        with self._table.what_if() as trial:
            slots = [self._reserved(gang, slot) for slot in gang.slots]
            found = [slot for slot in slots if slot is not None]
            if len(found) < len(slots):
                return
            trial.keep()
        mine = self._lifecycle.adopt(gang, is_guaranteed=True)
        for slot in found:
            self._table.add_slot(mine, slot)
        for member, size in gang.waiting_members.items():
            self._lifecycle.wait_for_victims(mine, member, size)

    def _adopt_late(self, gang: PlacedGang) -> None:
        """Reserve again what late members of a gang wait for, as far as possible."""
        mine = self._table.gangs.get(gang.key)
        waiting = list(gang.waiting_members.items())
        for slot in gang.reserved_slots() if mine is not None and mine.is_guaranteed else ():
            new = self._reserved(gang, slot)
            member = next((entry for entry in waiting if entry[1] == slot.size), None)
            if new is not None and member is not None and mine is not None:
                waiting.remove(member)
                self._table.add_slot(mine, new)
                self._lifecycle.wait_for_victims(mine, *member)

    def _reserved(self, gang: PlacedGang, slot: MemberSlot) -> MemberSlot | None:
        where = slot_placement(slot)
        leaves = named_leaves(self._table, where, gang.request.leaf_type)
        if leaves is None or not all(_may_be_reserved(leaf, gang) for leaf in leaves):
            return None
        claim = self._claim_finder.find(gang.request, leaves, where)
        return replace(slot, leaves=leaves, claim=claim) if claim is not None else None

    # -- downgraded gangs

    def promote_downgraded(self, gang: PlacedGang) -> None:
        """Promote a gang that was taken over, if it was downgraded and that is possible."""
        if gang.downgraded_by is not None and not gang.is_preempting:
            self.promote(gang)

    def promote(self, gang: PlacedGang) -> None:
        """Make a downgraded gang guaranteed again if unused cells of its VC cover its leaves."""
        mine = self._table.gangs.get(gang.key)
        if mine is None or not self._table.is_guaranteed(gang.request) or mine.is_being_preempted():
            return
        claims = self._claim_finder.find_all(mine)
        if claims:
            self._lifecycle.promote(mine, claims)


def _may_be_reserved(leaf: Cell, gang: PlacedGang) -> bool:
    if leaf.reserver is not None:
        return False
    return leaf.holder is None or leaf.holder.may_be_ended_for(gang.request)
