"""Chooses the leaves and the preassigned cell on which a running pod is counted."""

from collections.abc import Sequence
from dataclasses import dataclass

from extender.cells.model import MemberRequest
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang, slot_placement
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Claim, Vc
from policy.placement import Placement
from policy.submission import LeafType


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedLeaves:
    """The leaves on which a pod is counted."""

    leaves: tuple[Cell, ...]
    """All of one node; no bound member has them, but they may be leased."""
    missing_leaves: int
    """Leaf cells of its node that it uses and for which no leaf is left."""


def find_leaves(
    table: AllocationTable, placement: Placement, *, size: int, leaf_type: LeafType | None
) -> CountedLeaves:
    """The leaves that a pod names, and other leaves of its node for those that it does not name.

    If another bound member has a leaf that the pod names, the pod is counted on another leaf. A
    leaf that the topology does not have is not counted, since an admin removed it on purpose.
    Without a topology it is counted.
    """
    names = dict.fromkeys(placement.leaf_cells)
    nodes = _nodes(table, placement, leaf_type)
    unnamed = max(0, size - len(names))
    if not nodes:
        missing = unnamed + (len(names) if table.is_open else 0)
        return CountedLeaves(leaves=(), missing_leaves=missing)
    if len(nodes) > 1:
        nodes.sort(
            key=lambda cell: (len(_named(cell, names)), len(unheld_leaves(cell)) >= unnamed),
            reverse=True,
        )
    node = nodes[0]
    named = _named(node, names)
    found = [leaf for leaf in named if not is_bound(leaf)]
    missing = unnamed + len(named) - len(found)
    if table.is_open:
        missing += len(names) - len(named)
    if not missing:
        return CountedLeaves(leaves=tuple(found), missing_leaves=0)
    spare = [leaf for leaf in unheld_leaves(node) if leaf not in found]
    left = max(0, missing - len(spare))
    return CountedLeaves(leaves=(*found, *spare[:missing]), missing_leaves=left)


def named_leaves(
    table: AllocationTable, placement: Placement, leaf_type: LeafType | None
) -> tuple[Cell, ...] | None:
    """The leaves that a placement names; None if the node or one of them does not exist."""
    names = dict.fromkeys(placement.leaf_cells)
    for node in _nodes(table, placement, leaf_type):
        named = _named(node, names)
        if len(named) == len(names):
            return tuple(named)
    return None


def _nodes(table: AllocationTable, placement: Placement, leaf_type: LeafType | None) -> list[Cell]:
    """The cells of the pod's node: in the chain that it names first, then of its leaf type."""
    return sorted(
        table.nodes(placement.node),
        key=lambda cell: (
            cell.chain.name != placement.chain,
            leaf_type is not None and cell.chain.leaf_type != leaf_type,
            cell.chain.name,
        ),
    )


def _named(node: Cell, names: dict[int, None]) -> list[Cell]:
    """The leaves of a node that a placement names, in the order of the placement."""
    if not names:
        return []
    by_device = {leaf.device: leaf for leaf in node.leaves()}
    return [by_device[device] for device in names if device in by_device]


def unheld_leaves(node: Cell) -> Sequence[Cell]:
    """Leaves of a node that no gang holds, those that no gang reserves first."""
    unheld = [leaf for leaf in node.leaves() if leaf.holder is None]
    return sorted(unheld, key=lambda leaf: leaf.reserver is not None)


def is_bound(leaf: Cell) -> bool:
    """True if a bound member has a leaf; a leaf that is only leased counts as available."""
    holder = leaf.holder
    there = holder.slots.on(leaf.node) if holder is not None and leaf.node is not None else ()
    return any(slot.is_bound for slot in there if leaf in slot.leaves)


class ClaimFinder:
    """Finds the preassigned cell that running members count against, or maps one around them."""

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
