"""Gangs taken over by an engine that did not place them: after a start, or on a new topology.

What runs comes first, whatever it takes (`Observer`). What is only held, leased or reserved comes
after it and stays where it was, to the leaf, or not at all.
"""

from collections.abc import Sequence
from dataclasses import replace

from extender.cells.observe.bound_pods import PlacedMember, PodObserver, agree, where_counted
from extender.cells.observe.claims import ClaimFinder
from extender.cells.observe.counted_leaves import find_leaves, named_leaves
from extender.cells.observe.lifecycle import GangLifecycle
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang
from extender.cells.state.placements import slot_placement
from extender.cells.state.tree import Cell


class Adopter:
    """Takes gangs over."""

    def __init__(
        self, table: AllocationTable, lifecycle: GangLifecycle, observer: PodObserver
    ) -> None:
        self._table = table
        self._lifecycle = lifecycle
        self._observer = observer
        self._claimer = ClaimFinder(table)

    def adopt_all(self, gangs: Sequence[PlacedGang]) -> None:
        """Take over all gangs of another engine; those that come first claim their cells first."""
        self.adopt(gangs)
        for gang in gangs:
            if gang.downgraded_by is not None and not gang.is_preempting:
                self.promote(gang)

    def adopt(self, gangs: Sequence[PlacedGang]) -> None:
        """Take over the slots of these gangs, as they are: nobody is promoted."""
        allocated = [gang for gang in gangs if not gang.is_preempting]
        for gang in allocated:
            self._adopt_bound(gang)
        for gang in allocated:
            self._adopt_held(gang)
        for gang in gangs:
            if gang.is_preempting:
                self._adopt_preemption(gang)
            else:
                self._adopt_reserved(gang)

    # -- what runs

    def _adopt_bound(self, gang: PlacedGang) -> None:
        for slot in [slot for slot in gang.slots if slot.is_bound]:
            mine = self._table.gangs.get(gang.key) or self._begin(gang)
            where = slot_placement(slot)
            request = replace(gang.request, leaf_count=slot.size)
            sighting = find_leaves(self._table, request, where)
            new = replace(
                slot,
                leaves=sighting.leaves,
                missing_leaves=sighting.missing_leaves,
                claim=None,
                reported_placement=None,
            )
            new.reported_placement = where_counted(new, where)
            if new.reported_placement is not None and not new.leaves:
                # What it was counted on is gone: what counts is what it told, as next time.
                new.missing_leaves = find_leaves(
                    self._table, request, new.reported_placement
                ).missing_leaves
            self._observer.settle(mine, new, where)
            self._note_member(mine, new)

    def _begin(self, gang: PlacedGang) -> PlacedGang:
        is_guaranteed = self._lifecycle.is_guaranteed(gang.request) and gang.downgraded_by is None
        return self._lifecycle.adopt(gang, is_guaranteed=is_guaranteed)

    def _note_member(self, gang: PlacedGang, slot: MemberSlot) -> None:
        if slot.member is not None:
            self._lifecycle.assign(gang, slot, slot.member)
        self._lifecycle.refresh(gang)

    # -- what is held

    def _adopt_held(self, gang: PlacedGang) -> None:
        for slot in [slot for slot in gang.slots if not slot.is_bound and not slot.is_reserved]:
            self._adopt_lease(gang, slot)
        mine = self._table.gangs.get(gang.key)
        if mine is not None and not mine.has_members():
            self._lifecycle.end(mine)

    def _adopt_lease(self, gang: PlacedGang, slot: MemberSlot) -> bool:
        request = replace(gang.request, leaf_count=slot.size)
        bound = PlacedMember(request=request, placement=slot_placement(slot))
        leaves = self._idle_leaves(bound) if slot.leaves else None
        if leaves is None:
            return False
        mine = self._table.gangs.get(gang.key) or self._begin(gang)
        return self._hold(
            mine, replace(slot, leaves=leaves, claim=None, reported_placement=None), bound
        )

    def lease(self, bound: PlacedMember, *, expires: float) -> bool:
        """Hold the place that a released pod was told; False if it is not to be had any more."""
        request, known = bound.request, self._lifecycle.gang_of.get(bound.request.member)
        slot = self._leased_slot(bound)
        if known is not None or slot is None or not self._has_need(bound):
            return known == request.gang
        gang = self._table.gangs.get(request.gang) or self._observer.begin(bound)
        gang.lease_expires = max(gang.lease_expires, expires)
        return self._hold(gang, slot, bound)

    def _leased_slot(self, bound: PlacedMember) -> MemberSlot | None:
        """A slot on the leaves that a pod was told; without any if its node is not known yet."""
        leaves, size, member = (
            self._idle_leaves(bound),
            bound.request.leaf_count,
            bound.request.member,
        )
        if leaves is not None:
            return MemberSlot(leaves, len(leaves), member=member)
        if not self._table.is_open or self._table.nodes(bound.placement.node):
            return None
        return MemberSlot(
            (), size, member=member, reported_placement=bound.placement, missing_leaves=size
        )

    def _has_need(self, bound: PlacedMember) -> bool:
        """True if a gang agrees with its member, and has fewer places of its size than members."""
        request, gang = bound.request, self._table.gangs.get(bound.request.gang)
        if len({*bound.placement.leaf_cells}) != request.leaf_count:
            return False
        taken = sum(slot.size == request.leaf_count for slot in gang.slots) if gang else 0
        is_known = gang is None or agree(gang, request)
        return is_known and taken < request.gang_leaf_counts.count(request.leaf_count)

    def _idle_leaves(self, bound: PlacedMember) -> tuple[Cell, ...] | None:
        """The leaves that a placement names, all of them, if nobody else has any."""
        leaves = named_leaves(self._table, bound.request, bound.placement)
        if not leaves or any(leaf.holder or leaf.reserver for leaf in leaves):
            return None
        return leaves

    def _hold(self, gang: PlacedGang, slot: MemberSlot, bound: PlacedMember) -> bool:
        """Seat what is only leased; its gang keeps its standing, so there must be a cell for it."""
        if gang.is_guaranteed:
            slot.claim = self._claimer.find(gang.request, slot.leaves, bound.placement)
        if gang.is_guaranteed and slot.claim is None:
            if not gang.slots:
                self._lifecycle.end(gang)
            return False
        self._table.seat(gang, slot)
        self._note_member(gang, slot)
        return True

    # -- what is reserved

    def _adopt_preemption(self, gang: PlacedGang) -> None:
        """Go on with a preemption, if all it had reserved can be reserved again."""
        if not self._lifecycle.is_guaranteed(gang.request):
            return
        with self._table.what_if() as trial:
            slots = [self._reserved(gang, slot) for slot in gang.slots]
            found = [slot for slot in slots if slot is not None]
            if len(found) < len(slots):
                return
            trial.keep()
        mine = self._lifecycle.adopt(gang, is_guaranteed=True)
        for slot in found:
            self._table.seat(mine, slot)
        for member, size in gang.waiting_members.items():
            self._lifecycle.ask(mine, member, size)

    def _adopt_reserved(self, gang: PlacedGang) -> None:
        """Late members of a gang that goes on wait for what was reserved for them."""
        mine = self._table.gangs.get(gang.key)
        waiting = list(gang.waiting_members.items())
        for slot in gang.reserved_slots() if mine is not None and mine.is_guaranteed else ():
            new = self._reserved(gang, slot)
            member = next((entry for entry in waiting if entry[1] == slot.size), None)
            if new is not None and member is not None and mine is not None:
                waiting.remove(member)
                self._table.seat(mine, new)
                self._lifecycle.ask(mine, *member)

    def _reserved(self, gang: PlacedGang, slot: MemberSlot) -> MemberSlot | None:
        where = slot_placement(slot)
        leaves = named_leaves(self._table, gang.request, where)
        if leaves is None or not all(_may_be_reserved(leaf, gang) for leaf in leaves):
            return None
        claim = self._claimer.find(gang.request, leaves, where)
        return replace(slot, leaves=leaves, claim=claim) if claim is not None else None

    # -- what was downgraded

    def promote(self, gang: PlacedGang) -> None:
        """Guarantee a gang again that had been downgraded, if that is at nobody's expense."""
        mine = self._table.gangs.get(gang.key)
        if (
            mine is None
            or not self._lifecycle.is_guaranteed(gang.request)
            or mine.is_being_preempted()
        ):
            return
        claims = self._claimer.find_all(mine)
        if claims:
            self._lifecycle.promote(mine, claims)


def _may_be_reserved(leaf: Cell, gang: PlacedGang) -> bool:
    if leaf.reserver is not None:
        return False
    return leaf.holder is None or leaf.holder.may_be_ended_for(gang.request)
