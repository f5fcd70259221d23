"""Cells that are kept for a gang that waits, while another one is planned.

A reservation names seats. Inside a what-if, idle leaf cells of these are held, and those that other
gangs hold are reserved: so they do not become idle when their holders end, or are preempted. The
preassigned cells of the VC that the seats count against are kept, too. So the other gang takes
neither the leaf cells nor the entitlement, now or later.
"""

from collections.abc import Iterable, Sequence

from extender.cells.fit.gang_fit import PLACEHOLDER
from extender.cells.model import Seat, SeatsView
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Claim, Vc
from policy.submission import GangKey, NodeName, VcName
from policy.topology import CellAddress, ChainName


def keep(
    table: AllocationTable, vc: Vc | None, seats: Iterable[Seat], *, asking: GangKey | None = None
) -> None:
    """Keep seats of a VC, or of an opportunistic gang; call it inside a what-if.

    What the asking gang holds of them is left to it.
    """
    kept = set[tuple[ChainName, CellAddress]]()
    for seat in seats:
        tree = table.trees.get(seat.chain)
        if tree is None:
            continue
        claim = tree.by_address.get(seat.claim) if seat.claim is not None else None
        if claim is not None and vc is not None and (seat.chain, claim.address) not in kept:
            kept.add((seat.chain, claim.address))
            _keep_promise(table, vc, claim)
        leaves = [leaf for address in seat.leaves if (leaf := tree.by_address.get(address))]
        if vc is not None and claim is None:  # a cell that must become empty, while it is mapped
            leaves = [leaf for leaf in leaves if _is_claimed_by(leaf, vc.name)]
            _keep_mapped(table, leaves)
        _keep_leaves(table, leaves, asking)


def _keep_leaves(table: AllocationTable, leaves: Sequence[Cell], asking: GangKey | None) -> None:
    table.hold([leaf for leaf in leaves if leaf.idle], PLACEHOLDER)
    others = [
        leaf
        for leaf in leaves
        if leaf.holder not in (None, PLACEHOLDER)
        and leaf.reserver is None
        and leaf.holder.key != asking
    ]
    table.reserve(others, PLACEHOLDER)


def _keep_mapped(table: AllocationTable, leaves: Iterable[Cell]) -> None:
    """Keep the preassigned cells mapped that some leaves lie in."""
    for leaf in leaves:
        claim = leaf.enclosing_claim()
        if claim is not None:
            _pin(table, claim)


def _pin(table: AllocationTable, claim: Claim) -> None:
    """Keep a preassigned cell mapped where it is, also when no gang uses it any more."""
    if not claim.is_kept:
        claim.is_kept = True
        table.record_undo(lambda: setattr(claim, "is_kept", False))


def _is_claimed_by(leaf: Cell, vc: VcName) -> bool:
    claim = leaf.enclosing_claim()
    return claim is not None and claim.vc == vc


def _keep_promise(table: AllocationTable, vc: Vc, cell: Cell) -> None:
    """Map an unused cell of the VC, or at least withhold it, unless it is mapped there already."""
    chain = cell.chain.name
    if cell.claim is not None and cell.claim.vc == vc.name:
        _pin(table, cell.claim)
        return
    if not vc.unused(chain, cell.level):
        return
    if cell.is_unclaimed():
        with table.what_if() as trial:
            _pin(table, table.map_cell(vc, cell))
            if table.supplies[chain].is_safe():
                trial.keep()
                return
    virtual = vc.take(chain, cell.level)
    table.record_undo(lambda: vc.give_back(virtual))


def view_seats(table: AllocationTable, vc: VcName | None, seats: Iterable[Seat]) -> SeatsView:
    """Tell which gangs hold cells of these seats, and which nodes are of no use any more."""
    holders: dict[GangKey, None] = {}
    lost: dict[NodeName, None] = {}
    for seat in seats:
        tree = table.trees.get(seat.chain)
        for address in seat.leaves:
            leaf = tree.by_address.get(address) if tree is not None else None
            if vc is not None and seat.claim is None:
                # It must become empty while it is mapped; then it is of no interest any more.
                if leaf is not None and leaf.holder and _is_claimed_by(leaf, vc):
                    holders[leaf.holder.key] = None
            elif leaf is None or leaf.is_bad or _is_of_another(leaf, vc, seat):
                lost[_node_of(leaf, seat)] = None
            elif leaf.holder is not None:
                holders[leaf.holder.key] = None
    return SeatsView(holders=tuple(sorted(holders)), lost=tuple(lost))


def _is_of_another(leaf: Cell, vc: VcName | None, seat: Seat) -> bool:
    """Tell whether another VC has mapped a cell to a leaf, or a foreign pod stays on it."""
    if seat.claim is None:
        return False
    claim = leaf.enclosing_claim()
    if claim is not None:
        return claim.vc != vc
    return leaf.holder is not None and leaf.holder.is_kept


def _node_of(leaf: Cell | None, seat: Seat) -> NodeName:
    """Return the node of a leaf; of one that is gone, the address of the seat's first leaf."""
    if leaf is not None and leaf.node is not None:
        return leaf.node
    return NodeName(seat.leaves[0])
