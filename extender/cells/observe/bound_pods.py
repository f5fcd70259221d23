"""Bound pods become members of gangs, at the expense of leases if necessary.

A bound pod is a fact: it is never refused, and leases and reservations on its leaves are given up.

- If its preassigned cell is not found, or mapping one would break a promise to another VC, its gang
  is downgraded to opportunistic.
- If the topology does not have its leaf cells, it gets a slot without leaves.
- If the engine did not place it, its slot is *foreign*: it counts against no VC. It is a victim
  only if the policy reclaims leaf cells from foreign pods.
- If it uses more leaves than are known and free, the rest is counted when leaves become free.
"""

from dataclasses import replace

from extender.cells.model import MemberRequest, PlacedMember
from extender.cells.observe.counted_leaves import (
    ClaimFinder,
    covers,
    find_leaves,
    named_leaves,
    unheld_leaves,
)
from extender.cells.observe.lifecycle import GangLifecycle
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import (
    MemberSlot,
    PlacedGang,
    slot_placement,
    slot_with,
    sorted_by_key,
)
from extender.cells.state.tree import Cell
from policy.placement import Placement
from policy.submission import GangKey, NodeName


def recovery_order(bound: PlacedMember) -> tuple[int, GangKey, str]:
    """The order in which members are recovered, so that the order of the pods has no effect."""
    return -bound.request.priority, bound.request.gang, bound.request.member


class FullReplayNeeded(Exception):
    """Changing only some gangs gives another result than taking over all gangs in their order."""


class PodObserver:
    """Gives slots to bound pods.

    If it may not downgrade, it raises FullReplayNeeded where it would have to.
    """

    def __init__(
        self, table: AllocationTable, lifecycle: GangLifecycle, *, may_downgrade: bool = True
    ) -> None:
        self._may_downgrade = may_downgrade
        self._table = table
        self._lifecycle = lifecycle
        self._claim_finder = ClaimFinder(table)

    def observe(self, bound: PlacedMember) -> None:
        """Take in a member that runs on a node; one without leaf cells is forgotten."""
        member = bound.request.member
        key = self._lifecycle.gang_of.get(member)
        gang = self._table.gangs[key] if key else None
        slot = gang.slot_of(member) if gang else None
        if _size(bound) < 1:
            self._lifecycle.forget_member(member)
        elif gang is None or slot is None or gang.key != bound.request.gang:
            self._lifecycle.forget_member(member)
            _bind(self._slot_for(bound), bound)
        elif _agrees(slot, bound):
            _bind(slot, bound)
        else:
            _bind(self._move(gang, slot, bound), bound)

    def _move(self, gang: PlacedGang, slot: MemberSlot, bound: PlacedMember) -> MemberSlot:
        """Correct the slot of a member that is bound elsewhere than planned."""
        other = _slot_at(gang, bound)
        if other is not None and not slot.is_bound:
            member, former = slot.member, other.member
            gang.slots.set_member(slot, None)
            gang.slots.set_member(other, member)
            gang.slots.set_member(slot, former)
            other.had_member = True
            return other
        self._table.remove_slot(gang, slot)
        return self._slot_for(bound)

    def _slot_for(self, bound: PlacedMember) -> MemberSlot:
        """Find the slot that is held for a member, or count it on a new one."""
        gang = self._table.gangs.get(bound.request.gang)
        if gang is not None and gang.is_preempting:
            self._lifecycle.end(gang)
            gang = None
        slot = _slot_at(gang, bound) if gang else None
        if gang is None or slot is None or slot.member is not None:
            gang, slot = self._new_slot(bound)
        self._lifecycle.assign(gang, slot, bound.request.member)
        return slot

    def _new_slot(self, bound: PlacedMember) -> tuple[PlacedGang, MemberSlot]:
        """Count a member on leaves of its own; begins its gang if it is the first member."""
        known = self._table.gangs.get(bound.request.gang)
        if known is not None:
            self._drop_surplus(known, _size(bound))
        asked, leaf_type = bound.request.leaf_count, bound.request.leaf_type
        counted = find_leaves(self._table, bound.placement, size=asked, leaf_type=leaf_type)
        for leaf in counted.leaves:
            self._evict_lease(leaf)
        gang = self._table.gangs.get(bound.request.gang) or self.begin(bound)
        slot = MemberSlot(counted.leaves, _size(bound), missing_leaves=counted.missing_leaves)
        slot.is_foreign = not bound.placement.leaf_cells or not agree(gang, bound.request)
        slot.foreign = bound.foreign if slot.is_foreign else None
        slot.reported_placement = incomplete_placement(slot, bound.placement)
        self.add_observed_slot(gang, slot, bound.placement)
        return gang, slot

    def begin(self, bound: PlacedMember) -> PlacedGang:
        """Begin a gang with a member that has a placement already."""
        is_guaranteed = self._table.is_guaranteed(bound.request)
        gang = self._lifecycle.begin(bound.request, is_guaranteed=is_guaranteed)
        placement = bound.placement
        # A placement in a chain but in no cell of a VC: the gang was downgraded before the bind.
        is_lower = placement.leaf_cells and placement.chain and not placement.vc_cell_type
        if is_guaranteed and is_lower:
            self._lifecycle.downgrade(gang, by=gang.key)
        return gang

    def add_observed_slot(self, gang: PlacedGang, slot: MemberSlot, placement: Placement) -> None:
        """Find the claim of a slot whose member runs, and add the slot to its gang."""
        slot.is_reclaimable = self._table.reclaims_foreign and _may_end(slot)
        if gang.is_guaranteed and not slot.is_foreign:
            if self._may_downgrade:
                self._evict_claim(gang, slot)
            slot.claim = self._claim_finder.find(gang.request, slot.leaves, placement)
        is_lost = slot.claim is None and bool(slot.leaves) and not slot.is_foreign
        if gang.is_guaranteed and (is_lost or not self._claim_finder.has_promise(gang.request)):
            if not self._may_downgrade:
                raise FullReplayNeeded
            self._lifecycle.downgrade(gang, by=gang.key)
        self._table.add_slot(gang, slot)
        self._lifecycle.refresh(gang)
        self._lifecycle.cancel_blocked_preemptions(gang, slot.leaves)

    def _drop_surplus(self, gang: PlacedGang, size: int) -> None:
        """Give up a slot that was held or reserved for a member that is bound elsewhere."""
        if gang.slots.count(size) < gang.member_count(size):
            return
        spare = next(gang.slots.open(size), None)
        if spare is not None:
            self._table.remove_slot(gang, spare)
        elif waiting := [member for member, other in gang.waiting_members.items() if other == size]:
            self._lifecycle.cancel_wait(gang, waiting[0])

    def _evict_lease(self, leaf: Cell) -> None:
        """Give up the leased slot on a leaf that a bound pod uses."""
        if leaf.holder is not None:
            slot = slot_with(leaf.holder, leaf)
            self._lifecycle.give_up(leaf.holder, slot)

    def _evict_claim(self, gang: PlacedGang, slot: MemberSlot) -> None:
        """Give up the slots that keep a cell mapped for another VC, if none of them is bound."""
        claim = slot.leaves[0].enclosing_claim() if slot.leaves else None
        if claim is None or claim.vc == gang.request.vc:
            return
        users = [self._table.gangs[key] for key in sorted(claim.users)]
        inside = [(user, s) for user in users for s in user.slots if s.claim is claim]
        if any(s.is_bound for _, s in inside):
            return
        for user, held in inside:
            if held not in user.slots:
                continue  # given up together with an earlier one
            if held.is_reserved:
                self._lifecycle.cancel_preemption(user)
            else:
                self._lifecycle.give_up(user, held)

    # -- leaves that become known or free

    def count_freed(self) -> None:
        """Count missing leaves on the nodes where leaves became free."""
        nodes = sorted(self._table.nodes_with_freed_leaves)
        self._table.nodes_with_freed_leaves.clear()
        for node in nodes:
            self.count_on(node)

    def count_on(self, node: NodeName) -> None:
        """Give leaves of a node that became known or free to slots that miss leaves."""
        waiting = self._table.incomplete_slots.get(node, {})
        for slot, gang in sorted(waiting.items(), key=_counting_order):
            if slot not in gang.slots:
                continue  # a lease that an earlier slot evicted
            if slot.leaves:
                self._extend(gang, slot)
            elif slot.is_bound:
                self._give_leaves(gang, slot)
            else:
                self._lease_again(gang, slot)

    def _lease_again(self, gang: PlacedGang, slot: MemberSlot) -> None:
        """Give a leased slot the leaves of its placement when its node joins, or give it up."""
        assert slot.reported_placement is not None
        leaves = named_leaves(self._table, slot.reported_placement, gang.request.leaf_type)
        if not leaves or len(leaves) != slot.size or any(leaf.holder for leaf in leaves):
            self._lifecycle.give_up(gang, slot)
            return
        self._table.remove_slot(gang, slot)
        slot.leaves, slot.missing_leaves, slot.reported_placement = leaves, 0, None
        self._table.add_slot(gang, slot)

    def _give_leaves(self, gang: PlacedGang, slot: MemberSlot) -> None:
        """Give leaves to a bound member without any when its node joins."""
        placement, leaf_type = slot.reported_placement, gang.request.leaf_type
        assert placement is not None
        counted = find_leaves(self._table, placement, size=slot.size, leaf_type=leaf_type)
        if not counted.leaves:
            return
        for leaf in counted.leaves:
            self._evict_lease(leaf)
        self._table.remove_slot(gang, slot)
        slot.leaves, slot.missing_leaves = counted.leaves, counted.missing_leaves
        slot.reported_placement = incomplete_placement(slot, placement)
        self.add_observed_slot(gang, slot, placement)

    def _extend(self, gang: PlacedGang, slot: MemberSlot) -> None:
        node = slot.leaves[0].ancestor(slot.leaves[0].chain.node_level)
        more = tuple(unheld_leaves(node)[: slot.missing_leaves])
        if not more:
            return
        if slot.claim is not None and not covers(slot.claim.cell, more):
            self._lifecycle.downgrade(gang, by=gang.key)
        self._table.add_leaves(gang, slot, more)
        if slot.reported_placement is not None:
            slot.reported_placement = incomplete_placement(slot, slot.reported_placement)
        self._lifecycle.cancel_blocked_preemptions(gang, more)

    def vacate_node(self, node: Cell) -> None:
        """Take all gangs off a node that is about to be removed.

        Preemptions that wait for its leaves are cancelled. Members, bound or not, keep a slot
        without leaves, in case the node comes back. Slots that are only held are removed.
        """
        for gang in sorted_by_key(leaf.reserver for leaf in node.leaves()):
            self._lifecycle.cancel_preemption(gang)
        for gang in sorted_by_key(leaf.holder for leaf in node.leaves()):
            there = gang.slots.on(node.node) if node.node is not None else ()
            for slot in [slot for slot in there if slot.leaves]:
                where = slot_placement(slot)
                self._table.remove_slot(gang, slot)
                if slot.member is not None:
                    leafless = replace(slot, leaves=(), claim=None, missing_leaves=slot.size)
                    leafless.reported_placement = where
                    self._table.add_slot(gang, leafless)
            self._lifecycle.refresh(gang)


def _counting_order(item: tuple[MemberSlot, PlacedGang]) -> tuple[bool, int, GangKey, str]:
    """Bound members first, then leases; among each, as in recovery."""
    slot, gang = item
    return not slot.is_bound, -gang.request.priority, gang.key, slot.member or ""


def _size(bound: PlacedMember) -> int:
    """Leaf cells that a member uses: the number that it requests, else that its placement names."""
    asked = bound.request.leaf_count
    return asked if asked > 0 else len({*bound.placement.leaf_cells})


def _bind(slot: MemberSlot, bound: PlacedMember) -> None:
    slot.is_bound = True
    slot.reported_devices = bound.placement.leaf_cells or slot.reported_devices


def _may_end(slot: MemberSlot) -> bool:
    """True if the policy may end a foreign member; one that is not known is kept."""
    return slot.is_foreign and slot.foreign is not None and not slot.foreign.is_protected


def _agrees(slot: MemberSlot, bound: PlacedMember) -> bool:
    """True if the placement that a pod reports agrees with its slot."""
    there, names = slot_placement(slot), bound.placement.leaf_cells
    if slot.size != _size(bound) or there.node != bound.placement.node:
        return False
    if not names or (slot.is_bound and slot.reported_devices == names):
        return True
    return {*there.leaf_cells} == {*names}


def _slot_at(gang: PlacedGang, bound: PlacedMember) -> MemberSlot | None:
    """The slot of a gang that has no bound member and is where a member reports to be."""
    names = {*bound.placement.leaf_cells}
    for slot in gang.slots.on(bound.placement.node):
        if slot.is_bound or slot.is_reserved or slot.size != _size(bound):
            continue
        if slot.member is not None and not names:
            continue
        if not names or {*slot_placement(slot).leaf_cells} == names:
            return slot
    return None


def agree(gang: PlacedGang, mine: MemberRequest) -> bool:
    """True if a member's VC, priority and pinned cell are those of the gang's first member."""
    first = gang.request
    return (mine.vc, mine.priority, mine.pinned) == (first.vc, first.priority, first.pinned)


def incomplete_placement(slot: MemberSlot, placement: Placement) -> Placement | None:
    """The placement to show for a slot with fewer leaves than its member uses, else None."""
    if len(slot.leaves) >= slot.size:
        return None
    counted = tuple(leaf.device for leaf in slot.leaves if leaf.device is not None)
    names = slot.reported_devices or placement.leaf_cells
    return replace(placement, leaf_cells=counted if slot.is_foreign else names or counted)
