"""Gangs that hold or reserve leaf cells, the slots of their members, and a slot's placement."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from extender.cells.model import ForeignPod, FreeMode, GangState, MemberRequest
from extender.cells.state.gang_slots import GangSlots
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Claim
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid


@dataclass(slots=True, eq=False)
class MemberSlot:
    """The leaves of one member of a gang."""

    leaves: tuple[Cell, ...]
    """All of one node, in the order in which the container sees them."""
    size: int
    """Leaf cells that the member uses; more than `leaves` if not all of them can be counted."""
    claim: Claim | None = None
    """The preassigned cell that it counts against; None if the gang is opportunistic."""
    member: PodUid | None = None
    is_bound: bool = False
    reported_placement: Placement | None = None
    """The placement that the member's pod reports, while `leaves` does not cover it."""
    reported_devices: tuple[int, ...] = ()
    """Devices that the placement of a bound member named when it was observed."""
    missing_leaves: int = 0
    """Leaf cells of its node that it uses and that are not in `leaves`: other slots have them."""
    had_member: bool = False
    """True once a member had it: it may wait for a replacement, and no lease expires on it."""
    is_reserved: bool = False
    """True while its leaves are only reserved, since victims still hold them."""
    is_foreign: bool = False
    """The engine did not place its member: it counts against no VC and is never replaced."""
    foreign: ForeignPod | None = None
    """The pod of a foreign member, if it is known."""
    is_reclaimable: bool = False
    """Its member is foreign and may be ended where a promise needs its leaves, by policy."""
    is_ending: bool = False
    """Its member is terminating; it keeps its leaves until it has ended."""
    cached_placement: tuple[tuple[Cell, ...], Claim | None, Placement] | None = field(
        default=None, init=False
    )
    """The last result of `slot_placement`, with the leaves and claim it is for."""

    @property
    def node(self) -> NodeName:
        """The node of its leaves, or the one that its pod reports; the same while a gang has it."""
        if self.leaves:
            return self.leaves[0].node or NodeName("")
        return self.reported_placement.node if self.reported_placement else NodeName("")

    @property
    def held_count(self) -> int:
        """Number of leaves that it holds: those that it reserves are still held by others."""
        return 0 if self.is_reserved else len(self.leaves)


@dataclass(slots=True, eq=False)
class PlacedGang:
    """One gang, from its first decision to the end of its last member."""

    key: GangKey
    request: MemberRequest
    """The request of its first member; only fields that all members share are used."""
    sequence_number: int
    """Higher means younger; it breaks ties between pods of the same age."""
    is_guaranteed: bool
    slots: GangSlots = field(default_factory=GangSlots)
    lease_expires: float = 0.0
    waiting_members: dict[PodUid, int] = field(default_factory=dict)
    """Members that wait for a reserved slot, with their number of leaf cells."""
    downgraded_by: GangKey | None = None
    breaks_budget: bool = False
    """True if a PodDisruptionBudget forbids to end it: others end first."""
    minimum_run: int = 0
    """Seconds that it must run before a gang of its own VC may preempt it; 0 once it has."""
    contested_leaves: int = 0
    """Leaves that it holds, and that a gang has reserved."""
    _counted: tuple[tuple[int, ...], Counter[int]] | None = None
    """The sizes of the request, and how many members have each of them."""

    @property
    def is_foreign(self) -> bool:
        """True if the engine placed none of its members."""
        return self.slots.are_foreign

    @property
    def is_kept(self) -> bool:
        """True if it is foreign and the policy keeps one of its members: it is never a victim."""
        return self.slots.are_foreign and not self.slots.are_reclaimable

    @property
    def is_borrower(self) -> bool:
        """True if every VC may end it: it is opportunistic, or foreign where that is reclaimed."""
        if self.is_foreign:
            return not self.is_kept
        return not self.is_guaranteed

    @property
    def priority(self) -> int:
        """The priority at which it counts as a victim: a downgraded gang is opportunistic."""
        return self.request.priority if self.is_guaranteed else -1

    @property
    def is_preempting(self) -> bool:
        """True if all its slots are still reserved."""
        return 0 < self.slots.reserved_count == len(self.slots)

    @property
    def is_ending(self) -> bool:
        """True if all its remaining members are ending, so that all its leaves become free.

        A slot whose first member is still to come keeps the gang alive; a slot that waits for a
        replacement does not.
        """
        held = [slot for slot in self.slots if not slot.is_reserved]
        return any(slot.is_ending for slot in held) and all(
            slot.is_ending or (slot.member is None and slot.had_member) for slot in held
        )

    @property
    def leaf_count(self) -> int:
        """Number of leaves that it holds, without reserved ones."""
        return sum(slot.held_count for slot in self.slots)

    def may_be_ended_for(self, request: MemberRequest) -> bool:
        """True if a guaranteed gang may preempt it.

        It must be a borrower, or of the same VC at a lower priority. A gang that is preempting
        itself is not a victim: cancelling its reservation is enough.
        """
        if self.is_kept or self.is_preempting:
            return False
        return self.is_borrower or self.is_below(request)

    def is_below(self, request: MemberRequest) -> bool:
        """True if it is a guaranteed gang of the same VC at a lower priority."""
        mine = self.request
        return self.is_guaranteed and mine.vc == request.vc and mine.priority < request.priority

    @property
    def is_spared(self) -> bool:
        """True if it is no victim for now: it has not run for long enough.

        A gang that every VC may end is never spared: what a VC was promised comes first. Nor is
        one that ends already.
        """
        return bool(self.minimum_run) and not self.is_borrower and not self.is_ending

    def slot_of(self, member: PodUid) -> MemberSlot | None:
        return self.slots.of_member(member)

    def member_count(self, leaf_count: int) -> int:
        """The number of members of a size that its request lists."""
        sizes = self.request.gang_leaf_counts
        if self._counted is None or self._counted[0] is not sizes:
            self._counted = sizes, Counter(sizes)
        return self._counted[1][leaf_count]

    def reserved_slots(self, leaf_count: int | None = None) -> list[MemberSlot]:
        """Slots (of a size) that are reserved, whether or not the victims have ended."""
        return [
            slot for slot in self.slots.reserved() if leaf_count is None or slot.size == leaf_count
        ]

    def reserved_for(self, member: PodUid) -> MemberSlot | None:
        """The slot that is reserved for a late member; None while the whole gang is preempting."""
        size = self.waiting_members.get(member)
        if size is None or self.is_preempting:
            return None
        return next(iter(self.reserved_slots(size)), None)

    def has_members(self) -> bool:
        return self.slots.has_members

    def keeps_slots(self) -> bool:
        return self.request.free_mode is FreeMode.WHOLE

    def is_being_preempted(self) -> bool:
        return self.contested_leaves > 0

    def state(self) -> GangState:
        if self.is_preempting:
            return GangState.PREEMPTING
        return GangState.BEING_PREEMPTED if self.is_being_preempted() else GangState.ALLOCATED

    def victims(self) -> "list[PlacedGang]":
        """Gangs that hold leaves which this gang has reserved, by key."""
        return holders(self.reserved_slots())


def holders(slots: Sequence[MemberSlot]) -> list[PlacedGang]:
    """Gangs that hold leaves of some slots, sorted by key."""
    return sorted_by_key(leaf.holder for slot in slots for leaf in slot.leaves)


def sorted_by_key(gangs: Iterable[PlacedGang | None]) -> list[PlacedGang]:
    """Each gang once, sorted by key."""
    found = {gang.key: gang for gang in gangs if gang is not None}
    return [found[key] for key in sorted(found)]


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


def free_slot_at(gang: PlacedGang, leaf_count: int, placement: Placement) -> MemberSlot | None:
    """The slot of a size without a member at a place: a held one, or else a reserved one."""
    there = [
        slot
        for slot in gang.slots.on(placement.node)
        if slot.size == leaf_count and (slot.is_reserved or slot.member is None)
    ]
    found = (slot for slot in there if slot_placement(slot) == placement)
    return min(found, key=lambda slot: slot.is_reserved, default=None)


def slot_with(gang: PlacedGang, leaf: Cell) -> MemberSlot:
    """The slot of a gang that holds a leaf."""
    node = leaf.node or NodeName("")
    return next(slot for slot in gang.slots.on(node) if leaf in slot.leaves)


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
