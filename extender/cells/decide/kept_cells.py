"""How many leaf cells kept seats take, without planning: see `kept_seats`.

Upper bounds of what a gang can get subtract these numbers, so they are never too large.
"""

from collections.abc import Iterable

from extender.cells.model import KeptCells, Seat, Share
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Vc
from policy.topology import CellAddress, ChainName


def count_kept(table: AllocationTable, vc: Vc | None, seats: Iterable[Seat]) -> int:
    """Count the leaf cells that `keep` at least takes from what a VC does not use, or all VCs."""
    by_claim: dict[tuple[ChainName, CellAddress | None], int] = {}
    for seat in seats:
        tree = table.trees.get(seat.chain)
        leaves = (tree.by_address.get(address) for address in seat.leaves) if tree else ()
        idle = sum(leaf is not None and leaf.idle for leaf in leaves)
        if vc is None or seat.claim is not None:
            at = (seat.chain, seat.claim)
            by_claim[at] = by_claim.get(at, 0) + idle
    if vc is None:
        return sum(by_claim.values())
    unused: dict[tuple[ChainName, int], int] = {}
    return sum(
        idle for at, idle in by_claim.items() if idle and _takes_promise(table, vc, at, unused)
    )


def _takes_promise(
    table: AllocationTable,
    vc: Vc,
    at: tuple[ChainName, CellAddress | None],
    unused: dict[tuple[ChainName, int], int],
) -> bool:
    """Tell whether a kept cell is mapped for a VC, or takes one of its `unused` cells."""
    chain, address = at
    cell = table.trees[chain].by_address.get(address) if address is not None else None
    if cell is None:
        return False
    is_mapped = cell.claim is not None and cell.claim.vc == vc.name
    return is_mapped or _takes_unused(vc, cell, unused)


def kept_cells(table: AllocationTable, vc: Vc | None, seats: Iterable[Seat]) -> KeptCells:
    """Count the leaf cells that `keep` at least takes from what a gang of a VC could get.

    Seats come in the order in which they are kept. Leaf cells that opportunistic gangs use count,
    too: the VC could take them back if they were not reserved.
    """
    found: dict[Share, int] = {}
    unused: dict[tuple[ChainName, int], int] = {}
    takes: dict[Cell, bool] = {}
    for seat in seats:
        tree = table.trees.get(seat.chain)
        if tree is None:
            continue
        leaves = [leaf for address in seat.leaves if (leaf := tree.by_address.get(address))]
        cell = tree.by_address.get(seat.claim) if seat.claim is not None else None
        if vc is None:
            _count(found, (seat.chain, None), sum(leaf.idle for leaf in leaves))
        elif cell is None or (cell.claim is not None and cell.claim.vc == vc.name):
            for leaf in leaves:
                claim = leaf.enclosing_claim()
                if claim is not None and claim.vc == vc.name and _is_left(leaf):
                    _count(found, (seat.chain, claim.virtual.pinned), 1)
        else:
            if cell not in takes:
                takes[cell] = _takes_unused(vc, cell, unused)
            _count(found, (seat.chain, None), len(leaves) if takes[cell] else 0)
    return found


def _count(found: dict[Share, int], share: Share, leaves: int) -> None:
    found[share] = found.get(share, 0) + leaves


def _takes_unused(vc: Vc, cell: Cell, unused: dict[tuple[ChainName, int], int]) -> bool:
    """Tell whether a cell that is not mapped for a VC takes one of those that are left."""
    rung = cell.chain.name, cell.level
    left = unused.setdefault(rung, vc.unused(*rung))
    unused[rung] = left - 1
    return left > 0


def _is_left(leaf: Cell) -> bool:
    """Tell whether a leaf in a mapped cell counts as left to its VC (`Vc.left`)."""
    return leaf.reserver is None and (leaf.holder is None or not leaf.holder.is_guaranteed)
