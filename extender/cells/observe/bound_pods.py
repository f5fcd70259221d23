"""What runs, as the cluster tells it: bound pods become members of gangs.

A bound pod is a fact. It is never refused, and what is only leased or reserved gives way to it: if
its preassigned cell cannot be found again, or giving it one would break a promise to another VC,
its gang is downgraded to opportunistic; if the topology does not have its leaf cells, it is
remembered without them; if we did not place it, what it uses is foreign use. What it uses beyond
the leaves that are known and free is counted as soon as there are any.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from extender.cells.model import MemberRequest, Placement
from extender.cells.observe.claims import ClaimFinder, covers
from extender.cells.observe.counted_leaves import find_leaves, named_leaves, unheld_leaves
from extender.cells.observe.lifecycle import GangLifecycle
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang
from extender.cells.state.placements import slot_placement
from extender.cells.state.tree import Cell
from policy.submission import GangKey, NodeName, PodUid


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedMember:
    """A member and what its pod says of its placement: no leaf cells if we did not place it."""

    request: MemberRequest
    placement: Placement


def recovery_order(bound: PlacedMember) -> tuple[int, GangKey, str]:
    """In which order running members are taken in, so that the result does not depend on theirs."""
    return -bound.request.priority, bound.request.gang, bound.request.member


class FullReplayNeeded(Exception):
    """Somebody who runs would lose something that others, who come later, have now."""


class PodObserver:
    """Takes in what runs; unless it `may_downgrade`, only at nobody's expense."""

    def __init__(
        self, table: AllocationTable, lifecycle: GangLifecycle, *, may_downgrade: bool = True
    ) -> None:
        self._may_downgrade = may_downgrade
        self._table = table
        self._lifecycle = lifecycle
        self._claimer = ClaimFinder(table)

    def observe(self, bound: PlacedMember) -> None:
        """A member runs on a node, whoever put it there; one that uses nothing is forgotten."""
        member = bound.request.member
        gang = self._gang_of(member)
        slot = gang.slot_of(member) if gang else None
        if _size(bound) < 1:
            self._lifecycle.forget_member(member)
        elif gang is None or slot is None or gang.key != bound.request.gang:
            self._lifecycle.forget_member(member)
            _bind(self._seat(bound), bound)
        elif _says_the_same(slot, bound):
            _bind(slot, bound)
        else:
            _bind(self._move(gang, slot, bound), bound)

    def _gang_of(self, member: PodUid) -> PlacedGang | None:
        key = self._lifecycle.gang_of.get(member)
        return self._table.gangs[key] if key else None

    def _move(self, gang: PlacedGang, slot: MemberSlot, bound: PlacedMember) -> MemberSlot:
        """A member is not where it was thought to be."""
        other = _slot_at(gang, bound)
        if other is not None and not slot.is_bound:
            slot.member, other.member = other.member, slot.member
            other.had_member = True
            return other
        self._table.unseat(gang, slot)
        return self._seat(bound)

    def _seat(self, bound: PlacedMember) -> MemberSlot:
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
        """Count a member on leaves of its own; its gang begins if there is none."""
        known = self._table.gangs.get(bound.request.gang)
        if known is not None:
            self._drop_surplus(known, _size(bound))
        sighting = find_leaves(self._table, bound.request, bound.placement)
        for leaf in sighting.leaves:
            self._evict_lease(leaf)
        gang = self._table.gangs.get(bound.request.gang) or self.begin(bound)
        slot = MemberSlot(sighting.leaves, _size(bound), missing_leaves=sighting.missing_leaves)
        slot.is_foreign = not bound.placement.leaf_cells or not agree(gang, bound.request)
        slot.reported_placement = where_counted(slot, bound.placement)
        self.settle(gang, slot, bound.placement)
        return gang, slot

    def begin(self, bound: PlacedMember) -> PlacedGang:
        """A gang becomes known by a member that has a place."""
        is_guaranteed = self._lifecycle.is_guaranteed(bound.request)
        gang = self._lifecycle.begin(bound.request, is_guaranteed=is_guaranteed)
        placement = bound.placement
        # Placed in a chain, but in no cell of its VC: it was downgraded before it was bound.
        is_lower = placement.leaf_cells and placement.chain and not placement.vc_cell_type
        if is_guaranteed and is_lower:
            self._lifecycle.downgrade(gang, by=gang.key)
        return gang

    def settle(self, gang: PlacedGang, slot: MemberSlot, placement: Placement) -> None:
        """Give a slot that somebody runs in its preassigned cell, and the gang the slot."""
        if gang.is_guaranteed and not slot.is_foreign:
            if self._may_downgrade:
                self._evict_claim(gang, slot)
            slot.claim = self._claimer.find(gang.request, slot.leaves, placement)
        is_lost = slot.claim is None and bool(slot.leaves) and not slot.is_foreign
        if gang.is_guaranteed and (is_lost or not self._claimer.has_promise(gang.request)):
            if not self._may_downgrade:
                raise FullReplayNeeded
            self._lifecycle.downgrade(gang, by=gang.key)
        self._table.seat(gang, slot)
        self._lifecycle.refresh(gang)
        self._lifecycle.withdraw_blocked(gang, slot.leaves)

    def _drop_surplus(self, gang: PlacedGang, size: int) -> None:
        """A member came to another place than the one held for it: that is not needed any more."""
        taken = sum(slot.size == size for slot in gang.slots)
        spare = gang.open_slots(size)
        if taken < gang.request.gang_leaf_counts.count(size):
            return
        if spare:
            self._table.unseat(gang, spare[0])
        elif waiting := [member for member, other in gang.waiting_members.items() if other == size]:
            self._lifecycle.withdraw(gang, waiting[0])

    def _evict_lease(self, leaf: Cell) -> None:
        """Somebody runs where a place was only held."""
        if leaf.holder is not None:
            slot = next(slot for slot in leaf.holder.slots if leaf in slot.leaves)
            self._lifecycle.give_up(leaf.holder, slot)

    def _evict_claim(self, gang: PlacedGang, slot: MemberSlot) -> None:
        """Somebody runs in a cell that was mapped for another VC, and nobody runs there for it."""
        claim = slot.leaves[0].enclosing_claim() if slot.leaves else None
        if claim is None or claim.vc == gang.request.vc:
            return
        users = [self._table.gangs[key] for key in sorted(claim.users)]
        inside = [(user, s) for user in users for s in user.slots if s.claim is claim]
        if any(s.is_bound for _, s in inside):
            return
        for user, held in inside:
            if held not in user.slots:
                continue  # gone with one before it
            if held.is_reserved:
                self._lifecycle.cancel(user)
            else:
                self._lifecycle.give_up(user, held)

    # -- leaves that become known or free

    def count_freed(self) -> None:
        """Count what could not be counted before, on the nodes where leaves became free."""
        nodes = sorted(self._table.nodes_with_freed_leaves)
        self._table.nodes_with_freed_leaves.clear()
        for node in nodes:
            self.count_on(node)

    def count_on(self, node: NodeName) -> None:
        """Leaves of a node became known or free: those who use them uncounted come first."""
        waiting = self._table.incomplete_slots.get(node, {})
        for slot, gang in sorted(waiting.items(), key=_counting_order):
            if slot not in gang.slots:
                continue  # a lease that gave way to one before it
            if slot.leaves:
                self._extend(gang, slot)
            elif slot.is_bound:
                self._reseat(gang, slot)
            else:
                self._lease_again(gang, slot)

    def _lease_again(self, gang: PlacedGang, slot: MemberSlot) -> None:
        """The node of a leased place is here: the same leaves, or none."""
        assert slot.reported_placement is not None
        request = replace(gang.request, leaf_count=slot.size)
        leaves = named_leaves(self._table, request, slot.reported_placement)
        if not leaves or len(leaves) != slot.size or any(leaf.holder for leaf in leaves):
            self._lifecycle.give_up(gang, slot)
            return
        self._table.unseat(gang, slot)
        slot.leaves, slot.missing_leaves, slot.reported_placement = leaves, 0, None
        self._table.seat(gang, slot)

    def _reseat(self, gang: PlacedGang, slot: MemberSlot) -> None:
        """The node of a member that was remembered without leaves is here."""
        assert slot.reported_placement is not None
        request = replace(gang.request, leaf_count=slot.size)
        sighting = find_leaves(self._table, request, slot.reported_placement)
        if not sighting.leaves:
            return
        for leaf in sighting.leaves:
            self._evict_lease(leaf)
        self._table.unseat(gang, slot)
        slot.leaves, slot.missing_leaves = sighting.leaves, sighting.missing_leaves
        placement, slot.reported_placement = (
            slot.reported_placement,
            where_counted(slot, slot.reported_placement),
        )
        self.settle(gang, slot, placement)

    def _extend(self, gang: PlacedGang, slot: MemberSlot) -> None:
        node = slot.leaves[0].ancestor(slot.leaves[0].chain.node_level)
        more = tuple(unheld_leaves(node)[: slot.missing_leaves])
        if not more:
            return
        if slot.claim is not None and not covers(slot.claim.cell, more):
            self._lifecycle.downgrade(gang, by=gang.key)
        self._table.extend(gang, slot, more)
        if slot.reported_placement is not None:
            slot.reported_placement = where_counted(slot, slot.reported_placement)
        self._lifecycle.withdraw_blocked(gang, more)

    def unseat_node(self, node: Cell) -> None:
        """A node is taken out: its members are remembered without leaves, the rest is given up."""
        for gang in _sorted(leaf.reserver for leaf in node.leaves() if leaf.reserver):
            self._lifecycle.cancel(gang)
        for gang in _sorted(leaf.holder for leaf in node.leaves() if leaf.holder):
            for slot in [s for s in gang.slots if s.leaves and s.leaves[0].node == node.node]:
                where = slot_placement(slot)
                self._table.unseat(gang, slot)
                if slot.member is not None:
                    absent = replace(
                        slot,
                        leaves=(),
                        claim=None,
                        reported_placement=where,
                        missing_leaves=slot.size,
                    )
                    self._table.seat(gang, absent)
            self._lifecycle.refresh(gang)


def _counting_order(item: tuple[MemberSlot, PlacedGang]) -> tuple[bool, int, GangKey, str]:
    """What runs before what is leased, else as in recovery."""
    slot, gang = item
    return not slot.is_bound, -gang.request.priority, gang.key, slot.member or ""


def _size(bound: PlacedMember) -> int:
    """Leaf cells that a member uses: as many as it asked for, else as it names."""
    asked = bound.request.leaf_count
    return asked if asked > 0 else len({*bound.placement.leaf_cells})


def _bind(slot: MemberSlot, bound: PlacedMember) -> None:
    slot.is_bound = True
    slot.reported_devices = bound.placement.leaf_cells or slot.reported_devices


def _says_the_same(slot: MemberSlot, bound: PlacedMember) -> bool:
    """True if a pod says of its place what is known, or nothing new."""
    there, names = slot_placement(slot), bound.placement.leaf_cells
    if slot.size != _size(bound) or there.node != bound.placement.node:
        return False
    if not names or (slot.is_bound and slot.reported_devices == names):
        return True
    return {*there.leaf_cells} == {*names}


def _slot_at(gang: PlacedGang, bound: PlacedMember) -> MemberSlot | None:
    """The slot of a gang, bound to nobody, that is where a member says it is."""
    names = {*bound.placement.leaf_cells}
    for slot in gang.slots:
        if slot.is_bound or slot.is_reserved or slot.size != _size(bound):
            continue
        if slot.member is not None and not names:
            continue
        there = slot_placement(slot)
        if there.node == bound.placement.node and (not names or {*there.leaf_cells} == names):
            return slot
    return None


def agree(gang: PlacedGang, mine: MemberRequest) -> bool:
    """True if a member says of its gang what the gang's first member said."""
    first = gang.request
    return (mine.vc, mine.priority, mine.pinned) == (first.vc, first.priority, first.pinned)


def where_counted(slot: MemberSlot, placement: Placement) -> Placement | None:
    """What to show of a slot that has fewer leaves than its member uses."""
    if len(slot.leaves) >= slot.size:
        return None
    counted = tuple(leaf.device for leaf in slot.leaves if leaf.device is not None)
    names = slot.reported_devices or placement.leaf_cells
    return replace(placement, leaf_cells=counted if slot.is_foreign else names or counted)


def _sorted(gangs: Iterable[PlacedGang]) -> list[PlacedGang]:
    return sorted(dict.fromkeys(gangs), key=lambda gang: gang.key)
