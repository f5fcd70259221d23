"""The state of all cells, VCs and gangs, and the few operations that change it.

All changes go through `AllocationTable`, so that sums, rankings, free lists and counters always
agree, and so that changes can be undone: inside `what_if()` every change records how to undo it.
Thereby `plan` tries changes without leaving any, and `apply` changes all or nothing.
"""

from collections.abc import Generator, Mapping, Sequence

from extender.cells.model import OPPORTUNISTIC, MemberRequest, Seat
from extender.cells.state.bad_nodes import BadNodes
from extender.cells.state.foreign_use import ForeignUse
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang, SlotsByNode
from extender.cells.state.ranking import Ranking
from extender.cells.state.supply import Supply
from extender.cells.state.tree import Cell, ChainTree, build_tree_stepwise
from extender.cells.state.undo import Undoable
from extender.cells.state.vcs import Claim, Vc, build_vc, count_promises
from policy.submission import GangKey, NodeName, VcName
from policy.topology import CellAddress, ChainName, PinnedCellId, Topology


class AllocationTable(Undoable):
    """All chains, VCs and gangs; gangs hold leaves (now) or reserve them (after their victims)."""

    def __init__(self, topology: Topology | None, *, reclaims_foreign: bool = False) -> None:
        """`reclaims_foreign` lets promises end foreign pods."""
        super().__init__()
        self.reclaims_foreign = reclaims_foreign
        self.trees: dict[ChainName, ChainTree] = {}
        self.supplies: dict[ChainName, Supply] = {}
        self.idle: dict[ChainName, Ranking] = {}
        """Idle leaves of every node, mapped or not: for opportunistic gangs."""
        self.unclaimed: dict[ChainName, Ranking] = {}
        """Idle leaves of the nodes that are unclaimed: for mapping more preassigned cells."""
        self.vcs: dict[VcName, Vc] = {}
        self.gangs: dict[GangKey, PlacedGang] = {}
        self.incomplete_slots = SlotsByNode()
        """Slots of members that use more leaves of their node than could be counted."""
        self.nodes_with_freed_leaves: dict[NodeName, None] = {}
        """Nodes of incomplete slots on which a leaf may have become free."""
        self.leafless_slots = SlotsByNode()
        """Slots without leaves: the topology does not have their node or their leaves."""
        self.foreign = ForeignUse()
        self.bad_nodes = BadNodes(self.trees, self.changes)
        self.is_open = topology is None
        """Without a topology there are no promises: every gang may use every node."""
        if topology is not None:
            for _ in self.build_stepwise(topology):
                pass

    def build_stepwise(self, topology: Topology) -> Generator[None, None, None]:
        """Build all cells and VCs of a topology in an empty table; yields after each node."""
        self.is_open = False
        pinned: dict[PinnedCellId, Cell] = {}
        for name in sorted(topology.chains):
            tree = self.add_tree((yield from build_tree_stepwise(topology.chains[name])))
            pinned |= tree.pinned
        for vc_name in sorted(topology.vcs):
            self.vcs[vc_name] = build_vc(topology.vcs[vc_name], pinned)
        count_promises(self.vcs, self.trees, self.supplies)
        for vc_name, vc in self.vcs.items():
            for virtual in vc.virtual:
                if virtual.pinned is not None:
                    ranking = vc.pinned_rankings[virtual.pinned] = Ranking(
                        self.trees[virtual.chain]
                    )
                    ranking.promised = pinned[virtual.pinned].leaf_count
                    self._map(Claim(vc_name, virtual, pinned[virtual.pinned]))
        for supply in self.supplies.values():
            if not supply.is_uniform:  # now rather than within the first decision
                yield from supply.build_stepwise()
            supply.is_safe()

    def add_tree(self, tree: ChainTree) -> ChainTree:
        """Add a chain."""
        self.trees[tree.name] = tree
        self.supplies[tree.name] = Supply(tree)
        self.idle[tree.name] = Ranking(tree)
        self.unclaimed[tree.name] = Ranking(tree)
        return tree

    # -- leaves

    def hold(self, leaves: Sequence[Cell], gang: PlacedGang | None) -> None:
        """Set the holder of some leaves of one bin."""
        before = [leaf.holder for leaf in leaves]
        self._set_holders(leaves, [gang] * len(leaves))
        self.record_undo(lambda: self._set_holders(leaves, before))
        node = leaves[0].node if leaves else None
        if gang is None and node is not None and node in self.incomplete_slots:
            self.nodes_with_freed_leaves[node] = None

    def _set_holders(self, leaves: Sequence[Cell], holders: Sequence[PlacedGang | None]) -> None:
        was_idle = [_is_idle(leaf) for leaf in leaves]
        for leaf, holder in zip(leaves, holders, strict=True):
            if leaf.reserver is not None:
                _contest(leaf.holder, -1)
                _contest(holder, 1)
            leaf.holder = holder
        self._recount(leaves, was_idle)

    def reserve(self, leaves: Sequence[Cell], gang: PlacedGang | None) -> None:
        """Set the gang that gets some leaves of one bin when their holder has ended."""
        before = [leaf.reserver for leaf in leaves]
        self._set_reservers(leaves, [gang] * len(leaves))
        self.record_undo(lambda: self._set_reservers(leaves, before))

    def _set_reservers(
        self, leaves: Sequence[Cell], reservers: Sequence[PlacedGang | None]
    ) -> None:
        was_idle = [_is_idle(leaf) for leaf in leaves]
        for leaf, reserver in zip(leaves, reservers, strict=True):
            _contest(leaf.holder, (reserver is not None) - (leaf.reserver is not None))
            leaf.reserver = reserver
        self._recount(leaves, was_idle)

    def mark(self, leaves: Sequence[Cell], *, is_bad: bool) -> None:
        """Set the health of leaves of one node."""
        changed = [leaf for leaf in leaves if leaf.is_bad != is_bad]
        if changed:
            self._set_bad(changed, is_bad=is_bad)
            self.record_undo(lambda: self._set_bad(changed, is_bad=not is_bad))

    def _set_bad(self, leaves: Sequence[Cell], *, is_bad: bool) -> None:
        was_idle = [_is_idle(leaf) for leaf in leaves]
        for leaf in leaves:
            leaf.is_bad = is_bad
            _add_bad(leaf, 1 if is_bad else -1)
        self._recount(leaves, was_idle)

    def quarantine(self, node: Cell, *, is_quarantined: bool) -> None:
        """Note whether a node is in quarantine."""
        if node.is_quarantined != is_quarantined:
            node.is_quarantined = is_quarantined
            self.changes.record(node)
            self.record_undo(lambda: self.quarantine(node, is_quarantined=not is_quarantined))

    def _recount(self, leaves: Sequence[Cell], was_idle: Sequence[bool]) -> None:
        """Update the sums above these leaves, then the rankings of their bins."""
        total = 0
        node_level = leaves[0].chain.node_level if leaves else 0
        if leaves:
            self.changes.record(leaves[0])
        bins: dict[Cell, None] = {}
        for leaf, was in zip(leaves, was_idle, strict=True):
            delta = _is_idle(leaf) - was
            if not delta:
                continue
            total += delta
            cell: Cell | None = leaf
            while cell is not None and cell.level < node_level:
                cell.idle += delta
                if cell.claim is not None:
                    bins[cell] = None
                cell = cell.parent
            assert cell is not None
            cell.idle += delta
            bins[cell] = None
        if not bins:
            return
        above = leaves[0].ancestor(node_level).parent
        while above is not None and total:
            above.idle += total
            above = above.parent
        for bin_ in bins:
            self._rank(bin_)

    def _rank(self, bin_: Cell) -> None:
        """Update the room of a bin in all rankings that contain it."""
        chain = bin_.chain
        if bin_.level == chain.node_level:
            self.idle[chain.name].put(bin_, bin_.idle)
        claim = bin_.enclosing_claim()
        is_unclaimed = claim is None and bin_.claims_below == 0
        if bin_.level == chain.node_level:
            self.unclaimed[chain.name].put(bin_, bin_.idle if is_unclaimed else 0)
        if claim is not None:
            self.ranking_of(claim).put(bin_, bin_.idle)

    def ranking_of(self, claim: Claim) -> Ranking:
        """The ranking that contains the bins of a claim."""
        vc = self.vcs[claim.vc]
        if claim.virtual.pinned is not None:
            return vc.pinned_rankings[claim.virtual.pinned]
        return vc.rankings[claim.virtual.chain]

    # -- preassigned cells

    def map_cell(self, vc: Vc, cell: Cell) -> Claim:
        """Map an unused preassigned cell of the VC to an unclaimed physical cell of its level."""
        virtual = vc.take(cell.chain.name, cell.level)
        self.supplies[cell.chain.name].unused[cell.level] -= 1
        claim = Claim(vc.name, virtual, cell)
        self._map(claim)
        self.record_undo(lambda: self._unmap(claim))
        return claim

    def unmap_cell(self, claim: Claim) -> None:
        """Unmap a preassigned cell unless it is needed."""
        if claim.is_needed:
            return
        self._unmap(claim)
        self.record_undo(lambda: self._remap(claim))

    def _map(self, claim: Claim) -> None:
        cell = claim.cell
        self.changes.record(cell)
        self.supplies[cell.chain.name].split(cell)
        cell.claim = claim
        self.vcs[claim.vc].claims[claim.virtual.index] = claim
        if cell.level < cell.chain.node_level:
            self._rank(cell.ancestor(cell.chain.node_level))
            self._rank(cell)
        else:
            for bin_ in cell.at_level(cell.chain.node_level):
                self._rank(bin_)

    def _unmap(self, claim: Claim) -> None:
        cell, vc = claim.cell, self.vcs[claim.vc]
        ranking = self.ranking_of(claim)
        self.changes.record(cell)
        cell.claim = None
        self.supplies[cell.chain.name].merge(cell)
        self.supplies[cell.chain.name].unused[cell.level] += 1
        del vc.claims[claim.virtual.index]
        vc.give_back(claim.virtual)
        if cell.level < cell.chain.node_level:
            ranking.put(cell, 0)
            self._rank(cell.ancestor(cell.chain.node_level))
        else:
            for bin_ in cell.at_level(cell.chain.node_level):
                ranking.put(bin_, 0)
                self._rank(bin_)

    def _remap(self, claim: Claim) -> None:
        vc, virtual = self.vcs[claim.vc], claim.virtual
        vc.unmapped[virtual.chain, virtual.level].remove(virtual.index)
        self.supplies[virtual.chain].unused[virtual.level] -= 1
        self._map(claim)

    # -- slots

    def add_slot(self, gang: PlacedGang, slot: MemberSlot) -> None:
        """Add a slot to a gang; its leaves are held, or reserved if the slot is."""
        gang.slots.add(slot)
        self._index_slot(gang, slot)
        self.record_undo(lambda: self._delete_slot(gang, slot))
        if slot.claim is not None:
            self._count_user(slot.claim, gang.key, 1, slot.held_count)
        if slot.is_reserved:
            self.reserve(slot.leaves, gang)
        else:
            self.hold(slot.leaves, gang)

    def _put_back_slot(self, gang: PlacedGang, slot: MemberSlot, number: int) -> None:
        gang.slots.put_back(slot, number)
        self._index_slot(gang, slot)

    def _index_slot(self, gang: PlacedGang, slot: MemberSlot) -> None:
        self.foreign.add(slot)
        self.changes.record(gang)
        if not slot.leaves:
            self.leafless_slots.add(gang, slot)
        if slot.missing_leaves:
            self.incomplete_slots.add(gang, slot)

    def _delete_slot(self, gang: PlacedGang, slot: MemberSlot) -> None:
        gang.slots.remove(slot)
        self._unindex_slot(gang, slot)

    def _unindex_slot(self, gang: PlacedGang, slot: MemberSlot) -> None:
        self.foreign.drop(slot)
        self.changes.record(gang)
        if not slot.leaves:
            self.leafless_slots.drop(slot)
        if slot.missing_leaves:
            self.incomplete_slots.drop(slot)

    def remove_slot(
        self, gang: PlacedGang, slot: MemberSlot, *, keeps_claims: bool = False
    ) -> None:
        """Remove a slot of a gang; its preassigned cell is unmapped if no other slot uses it."""
        number = gang.slots.remove(slot)
        self._unindex_slot(gang, slot)
        self.record_undo(lambda: self._put_back_slot(gang, slot, number))
        if slot.is_reserved:
            self.reserve(slot.leaves, None)
        else:
            self.hold(slot.leaves, None)
        if slot.claim is not None:
            self._count_user(slot.claim, gang.key, -1, -slot.held_count)
            if not keeps_claims:
                self.unmap_cell(slot.claim)

    def add_leaves(self, gang: PlacedGang, slot: MemberSlot, leaves: Sequence[Cell]) -> None:
        """Add leaves to an incomplete slot; only for observations, it cannot be undone."""
        assert not self.is_trying
        self.incomplete_slots.drop(slot)
        self.hold(leaves, gang)
        self.changes.record(gang)
        self.foreign.drop(slot)
        self.count_taken(slot, len(leaves))
        slot.leaves = (*slot.leaves, *leaves)
        self.foreign.add(slot)
        slot.missing_leaves -= len(leaves)
        if slot.missing_leaves:
            self.incomplete_slots.add(gang, slot)

    def count_taken(self, slot: MemberSlot, leaves: int) -> None:
        """Count leaves that a slot holds from now on against the cells of its VC."""
        if slot.claim is not None:
            self.vcs[slot.claim.vc].count_taken(slot.claim.virtual, leaves)

    def remove_held_slots(self, gang: PlacedGang, *, keeps_claims: bool = False) -> None:
        """Remove the slots that a gang holds; it keeps its reserved ones."""
        for slot in [slot for slot in gang.slots if not slot.is_reserved]:
            self.remove_slot(gang, slot, keeps_claims=keeps_claims)

    def remove_reserved_slots(self, gang: PlacedGang) -> None:
        """Remove the reserved slots of a gang: it no longer preempts."""
        for slot in gang.reserved_slots():
            self.remove_slot(gang, slot)

    def downgrade(self, gang: PlacedGang) -> None:
        """Make a gang opportunistic on the same leaves; drops its claims and reservations."""
        self.remove_reserved_slots(gang)
        self._set_guaranteed(gang, is_guaranteed=False)
        for slot in gang.slots:
            claim = slot.claim
            if claim is not None:
                self._set_claim(slot, None)
                self._count_user(claim, gang.key, -1, -len(slot.leaves))
                self.unmap_cell(claim)

    def promote(self, gang: PlacedGang, claims: Mapping[MemberSlot, Claim]) -> None:
        """Make a gang guaranteed on the same leaves; its slots count against these claims."""
        self._set_guaranteed(gang, is_guaranteed=True)
        for slot, claim in claims.items():
            self._set_claim(slot, claim)
            self._count_user(claim, gang.key, 1, len(slot.leaves))

    def _set_guaranteed(self, gang: PlacedGang, *, is_guaranteed: bool) -> None:
        before, gang.is_guaranteed = gang.is_guaranteed, is_guaranteed
        self.changes.record(gang)
        self.record_undo(lambda: self._set_guaranteed(gang, is_guaranteed=before))

    def _set_claim(self, slot: MemberSlot, claim: Claim | None) -> None:
        before, slot.claim = slot.claim, claim
        self.record_undo(lambda: self._set_claim(slot, before))

    def _count_user(self, claim: Claim, key: GangKey, delta: int, leaves: int) -> None:
        self.vcs[claim.vc].count_taken(claim.virtual, leaves)
        left = claim.users.get(key, 0) + delta
        if left:
            claim.users[key] = left
        else:
            del claim.users[key]
        self.record_undo(lambda: self._count_user(claim, key, -delta, -leaves))

    # -- lookups

    def is_guaranteed(self, request: MemberRequest) -> bool:
        """True if a gang with this request must use preassigned cells of its VC."""
        return request.priority != OPPORTUNISTIC and not self.is_open

    def cell(self, chain: ChainName, address: CellAddress) -> Cell | None:
        """Find a physical cell."""
        tree = self.trees.get(chain)
        return tree.by_address.get(address) if tree else None

    def leaves_of(self, seat: Seat) -> tuple[Cell, ...]:
        """The leaves of a seat, which must exist."""
        by_address = self.trees[seat.chain].by_address
        return tuple(by_address[address] for address in seat.leaves)

    def nodes(self, name: NodeName) -> list[Cell]:
        """The cells of a node, one for each chain that contains it."""
        return [
            tree.by_node[name] for _, tree in sorted(self.trees.items()) if name in tree.by_node
        ]


def _contest(holder: PlacedGang | None, delta: int) -> None:
    if holder is not None:
        holder.contested_leaves += delta


def _is_idle(leaf: Cell) -> bool:
    return leaf.holder is None and leaf.reserver is None and not leaf.is_bad


def _add_bad(leaf: Cell, delta: int) -> None:
    cell: Cell | None = leaf
    while cell is not None:
        cell.bad += delta
        cell = cell.parent
