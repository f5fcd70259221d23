"""Slots that have fewer leaves than their member uses, by node."""

from extender.cells.state.placed_gangs import MemberSlot, PlacedGang
from extender.cells.state.placements import slot_placement
from policy.submission import NodeName


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
