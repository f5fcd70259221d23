"""Slots that lack leaves, by their node. Private to `extender.cells`."""

from extender.cells.state.placed_gangs import MemberSlot, PlacedGang
from extender.cells.state.placements import slot_placement
from policy.submission import NodeName


class SlotsByNode(dict[NodeName, dict[MemberSlot, PlacedGang]]):
    """Found again when something becomes of their node."""

    def add(self, gang: PlacedGang, slot: MemberSlot) -> None:
        """A slot is one of them from now on."""
        self.setdefault(slot_placement(slot).node, {})[slot] = gang

    def drop(self, slot: MemberSlot) -> None:
        """A slot is none of them any more; it still says where it is."""
        node = slot_placement(slot).node
        del self[node][slot]
        if not self[node]:
            del self[node]
