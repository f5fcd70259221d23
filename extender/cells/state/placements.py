"""Translates the leaves of a slot to a `Placement`, and finds slots by the node of it."""

from collections.abc import Sequence
from dataclasses import replace

from extender.cells.state.placed_gangs import MemberSlot, PlacedGang
from extender.cells.state.tree import Cell
from policy.placement import Placement
from policy.submission import NodeName


def placement_of(leaves: Sequence[Cell], *, claim_cell: Cell | None) -> Placement:
    """The placement of a member on some leaves of one node."""
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
    """The placement of a slot.

    It is read about a dozen times until a pod is bound and rarely changes, so it is cached.
    """
    if slot.reported_placement is not None:
        return slot.reported_placement
    leaves, claim, cached = slot.leaves, slot.claim, slot.cached_placement
    if cached is None or cached[0] is not leaves or cached[1] is not claim:
        placement = placement_of(leaves, claim_cell=claim.cell if claim else None)
        placement = replace(placement, vc_cell=claim.address) if claim else placement
        slot.cached_placement = cached = leaves, claim, placement
    return cached[2]


class SlotsByNode(dict[NodeName, dict[MemberSlot, PlacedGang]]):
    """Slots by node, so that they are found when leaves of the node become known or free."""

    def add(self, gang: PlacedGang, slot: MemberSlot) -> None:
        """Add a slot under the node of its placement."""
        self.setdefault(slot_placement(slot).node, {})[slot] = gang

    def drop(self, slot: MemberSlot) -> None:
        """Remove a slot; its placement must still name the same node."""
        node = slot_placement(slot).node
        del self[node][slot]
        if not self[node]:
            del self[node]
