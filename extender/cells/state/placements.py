"""Leaves of cells told as placements."""

from collections.abc import Sequence
from dataclasses import replace

from extender.cells.model import Placement
from extender.cells.state.placed_gangs import MemberSlot
from extender.cells.state.tree import Cell


def placement_of(leaves: Sequence[Cell], *, claim_cell: Cell | None) -> Placement:
    """The placement that some leaves of one node make."""
    tree = leaves[0].chain
    node = leaves[0].node
    assert node is not None
    return Placement(
        node=node,
        leaf_cells=tuple(leaf.device for leaf in leaves if leaf.device is not None),
        chain=tree.name if tree.is_named else None,
        vc_cell_type=tree.levels[claim_cell.level - 1].cell_type if claim_cell else None,
    )


def slot_placement(slot: MemberSlot) -> Placement:
    """Where a slot is.

    Asked a dozen times until a pod is bound, and seldom another answer: the last one is kept.
    """
    if slot.reported_placement is not None:
        return slot.reported_placement
    leaves, claim, shown = slot.leaves, slot.claim, slot.cached_placement
    if shown is None or shown[0] is not leaves or shown[1] is not claim:
        placement = placement_of(leaves, claim_cell=claim.cell if claim else None)
        placement = replace(placement, vc_cell=claim.address) if claim else placement
        slot.cached_placement = shown = leaves, claim, placement
    return shown[2]
