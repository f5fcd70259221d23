"""Finds the preassigned cell that running members count against, or maps one around them."""

from collections.abc import Sequence

from extender.cells.model import MemberRequest
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang, slot_placement
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Claim, Vc
from policy.placement import Placement


class ClaimFinder:
    """Finds preassigned cells of their VC for slots whose leaves are given."""

    def __init__(self, table: AllocationTable) -> None:
        self._table = table

    def has_promise(self, request: MemberRequest) -> bool:
        """True if the topology has the VC of a request, and its pinned cell if it names one."""
        vc = self._table.vcs.get(request.vc)
        return vc is not None and (request.pinned is None or request.pinned in vc.pinned_rankings)

    def find(
        self, request: MemberRequest, leaves: Sequence[Cell], placement: Placement
    ) -> Claim | None:
        """The claim of the VC that contains all leaves; an unused cell is mapped if it is safe."""
        vc = self._table.vcs.get(request.vc)
        if not leaves or vc is None:
            return None
        there = leaves[0].enclosing_claim()
        if there is not None:
            is_own = there.vc == vc.name and there.virtual.pinned == request.pinned
            return there if is_own and covers(there.cell, leaves) else None
        return None if request.pinned is not None else self._map_around(vc, leaves, placement)

    def _map_around(self, vc: Vc, leaves: Sequence[Cell], placement: Placement) -> Claim | None:
        chain = leaves[0].chain
        known = chain.level_of(placement.vc_cell_type or "")
        for level in [known] if known else vc.unused_levels(chain.name):
            cell = leaves[0].ancestor(level)
            if not vc.unused(chain.name, level) or not cell.is_unclaimed():
                continue
            if not covers(cell, leaves):
                continue
            claim = self._table.map_cell(vc, cell)
            if self._table.supplies[chain.name].is_safe():
                return claim
            self._table.unmap_cell(claim)
        return None

    def find_all(self, gang: PlacedGang) -> dict[MemberSlot, Claim] | None:
        """Claims for all slots of a gang; None, and nothing is mapped, if one has none."""
        found: dict[MemberSlot, Claim] = {}
        with self._table.what_if() as trial:
            for slot in gang.slots:
                if slot.is_foreign or not slot.leaves:
                    continue
                claim = self.find(gang.request, slot.leaves, slot_placement(slot))
                if claim is None:
                    return None
                found[slot] = claim
            trial.keep()
        return found


def covers(cell: Cell, leaves: Sequence[Cell]) -> bool:
    """True if all leaves lie in a cell."""
    return all(leaf.ancestor(cell.level) is cell for leaf in leaves)
