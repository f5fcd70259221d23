"""Gangs that have leaf cells or have reserved them. Private to `extender.cells`."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from extender.cells.model import GangState, MemberRequest, Placement, ReleaseMode
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Claim
from policy.submission import GangKey, PodUid


@dataclass(slots=True, eq=False)
class MemberSlot:
    """The place of one member of a gang."""

    leaves: tuple[Cell, ...]
    """In the order in which the container is told them; all of one node."""
    size: int
    """Leaf cells of its member; more than `leaves` if the topology does not have all of them."""
    claim: Claim | None = None
    """The preassigned cell that it counts against; None if the gang is opportunistic."""
    member: PodUid | None = None
    is_bound: bool = False
    reported_placement: Placement | None = None
    """Where a bound member says it is, if the topology does not have (all of) that."""
    reported_devices: tuple[int, ...] = ()
    """Devices that a bound member's placement named when it was taken in."""
    missing_leaves: int = 0
    """Leaf cells of its node that it uses and that could not be counted: others have them all."""
    had_member: bool = False
    """Somebody was here: a replacement may come, and no lease ends that."""
    is_reserved: bool = False
    """Its leaves are kept for the gang while others, its victims, still hold them."""
    is_foreign: bool = False
    """We did not place its member: it counts against no preassigned cell and is never replaced."""
    is_ending: bool = False
    """Its member was told to end, whoever told it, and has its leaves until it has ended."""
    cached_placement: tuple[tuple[Cell, ...], Claim | None, Placement] | None = field(
        default=None, init=False
    )
    """What `placing.slot_placement` said last, and of which leaves and claim."""


@dataclass(slots=True, eq=False)
class PlacedGang:
    """One gang, from its first decision to its last member's end."""

    key: GangKey
    request: MemberRequest
    """Of the member that asked first; what is the same for all members counts."""
    sequence_number: int
    """Sequence number: the higher, the younger; counts where pods are equally old."""
    is_guaranteed: bool
    slots: list[MemberSlot] = field(default_factory=list)
    lease_expires: float = 0.0
    waiting_members: dict[PodUid, int] = field(default_factory=dict)
    """Members that wait for a reserved slot, with their leaf cells."""
    downgraded_by: GangKey | None = None

    @property
    def is_foreign(self) -> bool:
        """True if we placed none of its members: then it is nobody's victim."""
        held = [slot for slot in self.slots if not slot.is_reserved]
        return bool(held) and all(slot.is_foreign for slot in held)

    @property
    def priority(self) -> int:
        """What counts when others look for victims: downgraded gangs are opportunistic."""
        return self.request.priority if self.is_guaranteed else -1

    @property
    def is_preempting(self) -> bool:
        """True if it has nothing yet but what is reserved for it."""
        return bool(self.slots) and all(slot.is_reserved for slot in self.slots)

    @property
    def is_ending(self) -> bool:
        """True if all members that are left are ending: its leaves come free, whatever happens.

        A place where a member is still to come is a reason to go on; one that somebody left is not.
        """
        held = [slot for slot in self.slots if not slot.is_reserved]
        return any(slot.is_ending for slot in held) and all(
            slot.is_ending or (slot.member is None and slot.had_member) for slot in held
        )

    @property
    def leaf_count(self) -> int:
        """Leaves that it holds."""
        return sum(len(slot.leaves) for slot in self.slots if not slot.is_reserved)

    def may_be_ended_for(self, request: MemberRequest) -> bool:
        """True if a guaranteed gang may preempt it: borrowed cells, or its own VC's, below it.

        Who preempts is no victim: giving up its reservation is enough.
        """
        if self.is_foreign or self.is_preempting:
            return False
        return not self.is_guaranteed or self.is_below(request)

    def is_below(self, request: MemberRequest) -> bool:
        """True if it counts on cells of the same VC, at a lower priority."""
        mine = self.request
        return self.is_guaranteed and mine.vc == request.vc and mine.priority < request.priority

    def slot_of(self, member: PodUid) -> MemberSlot | None:
        return next((slot for slot in self.slots if slot.member == member), None)

    def open_slots(self, leaf_count: int) -> list[MemberSlot]:
        """Slots of that size that no member has, but reserved ones."""
        return [
            slot
            for slot in self.slots
            if slot.member is None and slot.size == leaf_count and not slot.is_reserved
        ]

    def reserved_slots(self, leaf_count: int | None = None) -> list[MemberSlot]:
        """Slots (of that size) that victims still have to leave, or have just left."""
        return [
            slot
            for slot in self.slots
            if slot.is_reserved and (leaf_count is None or slot.size == leaf_count)
        ]

    def reserved_for(self, member: PodUid) -> MemberSlot | None:
        """What is given up if a late member does not wait any more; a whole gang waits as one."""
        size = self.waiting_members.get(member)
        if size is None or self.is_preempting:
            return None
        return next(iter(self.reserved_slots(size)), None)

    def has_members(self) -> bool:
        return any(slot.member is not None for slot in self.slots)

    def keeps_slots(self) -> bool:
        return self.request.release is ReleaseMode.WHOLE

    def is_being_preempted(self) -> bool:
        return any(
            leaf.reserver is not None
            for slot in self.slots
            if not slot.is_reserved
            for leaf in slot.leaves
        )

    def state(self) -> GangState:
        if self.is_preempting:
            return GangState.PREEMPTING
        return GangState.BEING_PREEMPTED if self.is_being_preempted() else GangState.ALLOCATED

    def victims(self) -> "list[PlacedGang]":
        """Gangs that still hold what this one has reserved, by key."""
        return holders(self.reserved_slots())


def holders(slots: Sequence[MemberSlot]) -> list[PlacedGang]:
    """Gangs that hold leaves of some slots, by key."""
    found = {
        leaf.holder.key: leaf.holder
        for slot in slots
        for leaf in slot.leaves
        if leaf.holder is not None
    }
    return [found[key] for key in sorted(found)]
