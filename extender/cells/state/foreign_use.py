"""Leaf cells that foreign pods use, by chain: reasons name the pods without visiting all gangs."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from heapq import merge
from itertools import islice

from extender.cells.model import ForeignPod
from extender.cells.state.placed_gangs import MemberSlot, slot_placement
from policy.topology import ChainName

Use = tuple[str, str, str, int]
"""A pod, its owner, its node, and the number of leaf cells that it uses there."""


class ForeignUse:
    """The slots of foreign pods that hold leaves, sorted by the names of the pods."""

    def __init__(self) -> None:
        self._uses: dict[ChainName, list[Use]] = {}
        self._leaf_counts: dict[ChainName, int] = {}

    def add(self, slot: MemberSlot) -> None:
        """Count a slot, if its member is a foreign pod and it has leaves."""
        if slot.foreign is not None and slot.leaves:
            chain = slot.leaves[0].chain.name
            insort(self._uses.setdefault(chain, []), _use(slot.foreign, slot))
            self._leaf_counts[chain] = self.leaf_count([chain]) + len(slot.leaves)

    def drop(self, slot: MemberSlot) -> None:
        """Stop counting a slot, which must have the same leaves as when it was added."""
        if slot.foreign is not None and slot.leaves:
            chain, use = slot.leaves[0].chain.name, _use(slot.foreign, slot)
            uses = self._uses[chain]
            del uses[bisect_left(uses, use)]
            self._leaf_counts[chain] -= len(slot.leaves)

    def leaf_count(self, chains: Iterable[ChainName]) -> int:
        """The number of leaf cells that foreign pods use."""
        return sum(self._leaf_counts.get(chain, 0) for chain in chains)

    def pod_count(self, chains: Iterable[ChainName]) -> int:
        """The number of foreign pods."""
        return sum(len(self._uses.get(chain, ())) for chain in chains)

    def first(self, chains: Iterable[ChainName], *, most: int) -> list[Use]:
        """The first foreign pods by name, at most so many."""
        return list(islice(merge(*(self._uses.get(chain, ()) for chain in chains)), most))


def _use(pod: ForeignPod, slot: MemberSlot) -> Use:
    return pod.name, pod.owner, slot_placement(slot).node, len(slot.leaves)
