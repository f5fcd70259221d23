"""The slots of one gang, with indexes: the cost of a question does not grow with the gang.

Slots are in the order in which they were added. What decisions ask for is found without visiting
all slots: the slot of a member, the slots without a member, the slots on a node.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from policy.submission import NodeName, PodUid

if TYPE_CHECKING:
    from extender.cells.state.placed_gangs import MemberSlot

_Slots = dict["MemberSlot", None]


class GangSlots:
    """An ordered collection of slots. `member` and `is_reserved` of its slots change only here."""

    __slots__ = (
        "_foreign",
        "_is_sorted",
        "_last",
        "_numbers",
        "_of_member",
        "_on_node",
        "_open",
        "_reclaimable",
        "_reserved",
        "_sizes",
    )

    def __init__(self, slots: "Iterable[MemberSlot]" = ()) -> None:
        self._numbers: dict[MemberSlot, int] = {}
        """All slots, with numbers that grow in their order."""
        self._last = 0
        self._is_sorted = True
        self._of_member: dict[PodUid, MemberSlot] = {}
        self._on_node: dict[NodeName, _Slots] = {}
        self._open: dict[int, _Slots] = {}
        """By size: slots that are held and have no member."""
        self._reserved: _Slots = {}
        self._sizes: Counter[int] = Counter()
        self._foreign = 0
        """Held slots of foreign members, and how many of them may be ended."""
        self._reclaimable = 0
        for slot in slots:
            self.add(slot)

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> "Iterator[MemberSlot]":
        """Go through all slots that there are now; slots may be removed meanwhile."""
        self._sort()
        return iter(list(self._numbers))

    def __contains__(self, slot: object) -> bool:
        return slot in self._numbers

    # -- changing

    def add(self, slot: "MemberSlot") -> None:
        """Add a slot behind all others."""
        self._last += 1
        self.put_back(slot, self._last)

    def remove(self, slot: "MemberSlot") -> int:
        """Remove a slot; returns its number, with which it can be put back."""
        if slot.member is not None:
            del self._of_member[slot.member]
        node = slot.node
        del self._on_node[node][slot]
        if not self._on_node[node]:
            del self._on_node[node]
        self._leave(slot)
        self._sizes[slot.size] -= 1
        return self._numbers.pop(slot)

    def put_back(self, slot: "MemberSlot", number: int) -> None:
        """Add a slot again where it was."""
        self._is_sorted = self._is_sorted and number == self._last
        self._numbers[slot] = number
        self._on_node.setdefault(slot.node, {})[slot] = None
        if slot.member is not None:
            self._of_member[slot.member] = slot
        self._sizes[slot.size] += 1
        self._enter(slot)

    def set_member(self, slot: "MemberSlot", member: PodUid | None) -> None:
        """Give a slot to another member, or to none."""
        self._leave(slot)
        if slot.member is not None and self._of_member.get(slot.member) is slot:
            del self._of_member[slot.member]
        slot.member = member
        if member is not None:
            self._of_member[member] = slot
        self._is_sorted = self._is_sorted and member is not None
        self._enter(slot)

    def occupy(self, slot: "MemberSlot") -> None:
        """Hold a slot that was reserved."""
        self._leave(slot)
        slot.is_reserved = False
        self._is_sorted = False
        self._enter(slot)

    def _enter(self, slot: "MemberSlot") -> None:
        """Count a slot by its standing."""
        if slot.is_reserved:
            self._reserved[slot] = None
            return
        self._foreign += slot.is_foreign
        self._reclaimable += slot.is_foreign and slot.is_reclaimable
        if slot.member is None:
            self._open.setdefault(slot.size, {})[slot] = None

    def _leave(self, slot: "MemberSlot") -> None:
        if slot.is_reserved:
            del self._reserved[slot]
            return
        self._foreign -= slot.is_foreign
        self._reclaimable -= slot.is_foreign and slot.is_reclaimable
        if slot.member is None:
            del self._open[slot.size][slot]

    def _sort(self) -> None:
        if self._is_sorted:
            return
        numbers = self._numbers
        self._numbers = dict(sorted(numbers.items(), key=lambda item: item[1]))
        self._reserved = dict.fromkeys(sorted(self._reserved, key=numbers.__getitem__))
        for by in (self._open, self._on_node):
            for key, slots in by.items():
                by[key] = dict.fromkeys(sorted(slots, key=numbers.__getitem__))  # type: ignore[index] # of `by`
        self._is_sorted = True

    def audit(self) -> bool:
        """True if all indexes agree with the slots."""
        fresh = GangSlots(self)
        return (
            fresh._of_member == self._of_member
            and fresh._on_node == self._on_node
            and _without_empty(fresh._open) == _without_empty(self._open)
            and fresh._reserved == self._reserved
            and +fresh._sizes == +self._sizes
            and (fresh._foreign, fresh._reclaimable) == (self._foreign, self._reclaimable)
        )

    # -- asking

    def of_member(self, member: PodUid) -> "MemberSlot | None":
        """The slot of a member."""
        return self._of_member.get(member)

    @property
    def has_members(self) -> bool:
        """True if a slot has a member."""
        return bool(self._of_member)

    def on(self, node: NodeName) -> "list[MemberSlot]":
        """The slots on a node."""
        self._sort()
        return list(self._on_node.get(node, ()))

    def open(self, size: int) -> "Iterator[MemberSlot]":
        """Slots of a size that are held and have no member."""
        self._sort()
        return iter(self._open.get(size, ()))

    def reserved(self) -> "list[MemberSlot]":
        """Slots that are only reserved."""
        self._sort()
        return list(self._reserved)

    @property
    def reserved_count(self) -> int:
        return len(self._reserved)

    def count(self, size: int) -> int:
        """The number of slots of a size."""
        return self._sizes[size]

    @property
    def are_foreign(self) -> bool:
        """True if some slots are held, and the members of all these are foreign."""
        return 0 < self._foreign == len(self._numbers) - len(self._reserved)

    @property
    def are_reclaimable(self) -> bool:
        """True if all held slots are of members that may be ended where a promise needs them."""
        return self._reclaimable == len(self._numbers) - len(self._reserved)


def _without_empty(by_size: dict[int, _Slots]) -> dict[int, _Slots]:
    return {size: slots for size, slots in by_size.items() if slots}
