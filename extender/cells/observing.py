"""What runs, as the cluster tells it: bound pods become members, nodes become cells.

A bound pod is a fact. It is never refused: if its preassigned cell cannot be found again, or giving
it one would break a promise to another VC, its gang is downgraded to opportunistic; if the topology
does not have its leaf cells, it is remembered without them; if we did not place it, what it uses is
foreign use.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from extender.cells.applying import Lives
from extender.cells.gangs import Gang, Slot
from extender.cells.model import OPPORTUNISTIC, MemberRequest, Placement
from extender.cells.placing import slot_placement
from extender.cells.table import Table
from extender.cells.tree import Cell
from extender.cells.vcs import Claim, Vc
from policy.submission import GangKey, NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A member that runs, and what its pod says of its placement: no leaf cells if not ours."""

    request: MemberRequest
    placement: Placement


def recovery_order(bound: Bound) -> tuple[int, GangKey, str]:
    """In which order running members are taken in, so that the result does not depend on theirs."""
    return -bound.request.priority, bound.request.gang, bound.request.member


class Observer:
    """Takes in what runs."""

    def __init__(self, table: Table, lives: Lives) -> None:
        self._table = table
        self._lives = lives

    def observe(self, bound: Bound) -> None:
        """A member runs on a node, whoever put it there."""
        request, node = bound.request, bound.placement.node
        slot = self._slot_of(bound)
        if slot is None or slot_placement(slot).node != node:
            self._lives.forget_member(request.member)
            slot = self._seat(bound)
        slot.is_bound = True

    def _slot_of(self, bound: Bound) -> Slot | None:
        key = self._lives.gang_of.get(bound.request.member)
        gang = self._table.gangs[key] if key else None
        return gang.slot_of(bound.request.member) if gang else None

    def _seat(self, bound: Bound) -> Slot:
        request = bound.request
        gang = self._table.gangs.get(request.gang)
        if gang is not None and gang.is_preempting:
            self._lives.end(gang)
            gang = None
        if gang is None:
            gang = self._begin(bound)
        slot = self._held_slot(gang, bound) or self._new_slot(gang, bound)
        self._lives.assign(gang, slot, request.member)
        return slot

    def _begin(self, bound: Bound) -> Gang:
        is_ours = bool(bound.placement.leaf_cells)
        is_guaranteed = (
            is_ours and bound.request.priority != OPPORTUNISTIC and not self._table.is_open
        )
        gang = self._lives.begin(bound.request, is_guaranteed=is_guaranteed, is_foreign=not is_ours)
        # Placed in a chain, but in no cell of its VC: it was downgraded before it was bound.
        if is_guaranteed and bound.placement.chain and not bound.placement.vc_cell_type:
            self._lives.downgrade(gang, by=gang.key)
        return gang

    def _held_slot(self, gang: Gang, bound: Bound) -> Slot | None:
        """The slot that was held for exactly this member."""
        for slot in gang.open_slots(bound.request.leaf_count):
            there = slot_placement(slot)
            wanted = bound.placement.leaf_cells or there.leaf_cells
            if there.node == bound.placement.node and sorted(there.leaf_cells) == sorted(wanted):
                return slot
        return None

    def _new_slot(self, gang: Gang, bound: Bound) -> Slot:
        self._drop_surplus(gang, bound.request.leaf_count)
        leaves = self._find_leaves(bound)
        claim = self._find_claim(gang, leaves, bound.placement) if leaves else None
        is_lost = (leaves and claim is None) or not self._has_promise(gang)
        if gang.is_guaranteed and is_lost:
            self._lives.downgrade(gang, by=gang.key)
        size = bound.request.leaf_count
        observed = bound.placement if len(leaves) < size else None
        slot = Slot(tuple(leaves), size, claim, observed=observed)
        self._table.seat(gang, slot)
        return slot

    def _has_promise(self, gang: Gang) -> bool:
        """True if its VC, and the pinned cell that it asked for, are in the topology."""
        vc = self._table.vcs.get(gang.request.vc)
        pinned = gang.request.pinned
        return vc is not None and (pinned is None or pinned in vc.pinned_rankings)

    def _drop_surplus(self, gang: Gang, size: int) -> None:
        """A member came to another place than the one held for it: that is not needed any more."""
        taken = sum(slot.size == size for slot in gang.slots)
        spare = gang.open_slots(size)
        if spare and taken >= gang.request.gang_leaf_counts.count(size):
            self._table.unseat(gang, spare[0])

    def adopt(self, gang: Gang) -> None:
        """Take over a gang of another engine: its members, bound or not, where they are."""
        placed = [slot for slot in gang.slots if slot.member is not None]
        if gang.is_preempting or not placed:
            return
        mine = self._lives.adopt(gang)
        for slot in placed:
            assert slot.member is not None
            request = replace(gang.request, member=slot.member, leaf_count=slot.size)
            where = slot.observed or slot_placement(slot)
            new = self._new_slot(mine, Bound(request=request, placement=where))
            self._lives.assign(mine, new, slot.member)
            new.is_bound = slot.is_bound

    # -- leaves

    def _find_leaves(self, bound: Bound) -> list[Cell]:
        """The leaves that the pod names, else, or if somebody has them, others of its node."""
        request, placement = bound.request, bound.placement
        nodes = self._nodes(placement, request)
        named = max((_named(node, placement) for node in nodes), key=len, default=[])
        # A configured topology may have lost leaves on purpose; nodes as they are have them all.
        is_believed = len(named) == len(placement.leaf_cells) or not self._table.is_open
        if placement.leaf_cells and is_believed and all(leaf.holder is None for leaf in named):
            return named
        for node in nodes:
            free = [leaf for leaf in node.leaves() if leaf.holder is None]
            if len(free) >= request.leaf_count:
                return free[: request.leaf_count]
        return [leaf for node in nodes[:1] for leaf in node.leaves() if leaf.holder is None]

    def _nodes(self, placement: Placement, request: MemberRequest) -> list[Cell]:
        """The cells of the pod's node: the chain it names first, then those of its leaf type."""
        return sorted(
            self._table.nodes(placement.node),
            key=lambda cell: (
                cell.chain.name != placement.chain,
                request.leaf_type is not None and cell.chain.leaf_type != request.leaf_type,
                cell.chain.name,
            ),
        )

    # -- preassigned cells

    def _find_claim(self, gang: Gang, leaves: Sequence[Cell], placement: Placement) -> Claim | None:
        vc = self._table.vcs.get(gang.request.vc)
        if not gang.is_guaranteed or vc is None:
            return None
        there = leaves[0].enclosing_claim()
        if there is not None:
            is_own = there.vc == vc.name and there.virtual.pinned == gang.request.pinned
            return there if is_own and _covers(there.cell, leaves) else None
        if gang.request.pinned is not None:
            return None
        return self._map_around(vc, leaves, placement)

    def _map_around(self, vc: Vc, leaves: Sequence[Cell], placement: Placement) -> Claim | None:
        chain = leaves[0].chain
        known = chain.level_of(placement.vc_cell_type or "")
        for level in [known] if known else vc.unused_levels(chain.name):
            cell = leaves[0].ancestor(level)
            if not vc.unused(chain.name, level) or not cell.is_unclaimed():
                continue
            if not _covers(cell, leaves):
                continue
            claim = self._table.map_cell(vc, cell)
            if self._table.supplies[chain.name].is_safe():
                return claim
            self._table.unmap_cell(claim)
        return None

    # -- nodes that come

    def reseat(self, node: NodeName) -> None:
        """A node came: members that were remembered without leaves get them."""
        for _, gang in sorted(self._table.gangs.items()):
            for slot in [s for s in gang.slots if not s.leaves and s.observed]:
                if slot.observed and slot.observed.node == node and slot.member is not None:
                    request = replace(gang.request, member=slot.member, leaf_count=slot.size)
                    self._table.unseat(gang, slot)
                    new = self._new_slot(gang, Bound(request=request, placement=slot.observed))
                    new.member, new.is_bound, new.had_member = slot.member, slot.is_bound, True

    def unseat_node(self, node: Cell) -> None:
        """A node is taken out: its members are remembered without leaves, the rest is given up."""
        holders = {leaf.holder for leaf in node.leaves() if leaf.holder is not None}
        reservers = {leaf.reserver for leaf in node.leaves() if leaf.reserver is not None}
        for gang in sorted(reservers, key=lambda gang: gang.key):
            self._lives.cancel(gang)
        for gang in sorted(holders, key=lambda gang: gang.key):
            for slot in [s for s in gang.slots if s.leaves and s.leaves[0].node == node.node]:
                where = slot_placement(slot)
                self._table.unseat(gang, slot)
                if slot.member is not None:
                    absent = replace(slot, leaves=(), claim=None, observed=where)
                    self._table.seat(gang, absent)


def _named(node: Cell, placement: Placement) -> list[Cell]:
    """The leaves of a node that a placement names, in its order."""
    by_device = {leaf.device: leaf for leaf in node.leaves()}
    return [by_device[device] for device in placement.leaf_cells if device in by_device]


def _covers(cell: Cell, leaves: Sequence[Cell]) -> bool:
    return all(leaf.ancestor(cell.level) is cell for leaf in leaves)
