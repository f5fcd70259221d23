"""Input and output of the planner: pods, actions, notices. Immutable."""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from extender.cells.model import MemberRequest, Preempt, Reason
from extender.queue.reserve.model import Reservation
from policy.placement import Placement
from policy.queues.alternatives import Alternative, GangTerms
from policy.submission import GangKey, NodeName, PodUid

PodRank = tuple[tuple[int, str], ...]
"""Compares as the numbers and texts in it: the natural order of names."""

LeafCounts = Mapping[int, int]
"""How many members ask for each number of leaf cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersLeft:
    """How many members of a gang have not succeeded yet, and which of them are created later.

    A workload may have more pods than the gang has members, one set after the other.
    """

    size: int
    each: int
    """The leaf cells of a member that is created first."""
    late: tuple[int, ...] = ()
    """The leaf cells of each member that is created only after others are Ready, largest first."""
    finished: LeafCounts = field(default_factory=dict)
    """The members that have succeeded, by their leaf cells."""

    @property
    def count(self) -> int:
        """The number of members that have not succeeded yet."""
        return self.size - sum(self.finished.values()) % self.size

    @property
    def created_late(self) -> tuple[int, ...]:
        """The leaf cells of each late member that has not succeeded.

        If all members ask for as many leaf cells, those that were created first succeed first.
        """
        if not self.late or not self.finished:
            return self.late
        left, sets = Counter(self.late), sum(self.finished.values()) // self.size
        for leaf_count, number in left.items():
            if leaf_count != self.each:
                done = self.finished.get(leaf_count, 0) - sets * number
                left[leaf_count] = number - min(max(0, done), number)
        return tuple(sorted(left.elements(), reverse=True))

    @property
    def created_first(self) -> int:
        """The number of members that are created before any is Ready; all if those are done."""
        late = len(self.created_late)
        return self.count - late if self.count > late else self.count

    def least(self, gang_min: int | None) -> int:
        """Return how many members must exist before the gang is planned."""
        if gang_min is None:
            return self.created_first
        return max(1, min(gang_min - (self.size - self.count), self.created_first))

    def missing_late(self, there: int) -> tuple[int, ...]:
        """Return the leaf cells of late members that do not exist if `there` members do."""
        return self.created_late[: max(0, self.count - there)]

    def missing(self, there: int, *, each: int) -> list[int]:
        """Return the leaf cells of all members that do not exist.

        First come those that are created later; all others are assumed to ask for `each`.
        """
        late = self.missing_late(there)
        return [*late, *[each] * (self.count - there - len(late))]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedPod:
    """A pod that our gate holds or held, as it was last seen."""

    request: MemberRequest
    """What it asks for, as far as the pod itself states it."""
    gang_size: int
    is_gated: bool
    is_ending: bool = False
    node: NodeName | None = None
    """The node that it is bound to."""
    nominated: NodeName | None = None
    """Its nominated node: kube-scheduler tries it first."""
    is_refused: bool = False
    """Whether kube-scheduler last found no node for it, not even the nominated one."""
    placement: Placement | None = None
    """The placement of its annotation."""
    node_wish: Hashable = None
    """Its node selector, affinity and tolerations: pods with equal wishes fit the same nodes."""
    may_preempt: bool = True
    workload: str = ""
    """The UID of its topmost controller."""
    rank: PodRank = ()
    """Its place among the members: of a gang that starts in part, the lowest ranks start."""
    late: tuple[int, ...] = ()
    """The leaf cells of each member that is created only after others are Ready."""
    alone: MemberRequest | None = None
    """The request of the pod alone, where a gang may have more members than it needs."""
    avoids: tuple[NodeName, ...] = ()
    """Nodes on which members of its workload failed at start: used only if no others suit."""
    first_asked: float | None = None
    """When its workload first asked, if an earlier pod of it ended for another gang."""

    user: str = ""
    """The user that is charged for it."""
    group: str | None = None
    """The group that is charged for it."""
    class_name: str = ""
    """The class that it is ranked in."""
    start_by: float | None = None
    """When its owner wishes its gang to start, in seconds since 1970."""
    alternatives: tuple[Alternative, ...] = ()
    """Other forms in which its gang may run."""
    forms: tuple[GangTerms, ...] = ()
    """What it asks for, and what it asks for by each alternative; none without alternatives."""
    alternative: str = ""
    """The alternative by which it was placed, as it states it."""

    @property
    def uid(self) -> PodUid:
        """The UID of the pod."""
        return self.request.member

    @property
    def created(self) -> float:
        """When it was created."""
        return self.request.created

    @property
    def is_helper(self) -> bool:
        """Whether it is a member without leaf cells: kube-scheduler chooses its node."""
        return self.request.leaf_count == 0

    def in_form(self, number: int) -> "QueuedPod":
        """Return it as it is by an alternative; 0: as it asks."""
        if number >= len(self.forms):
            return self
        form = self.forms[number]
        request = replace(
            self.request, vc=form.vc, leaf_type=form.leaf_type, gang_min=form.gang_min
        )
        return self if request == self.request else replace(self, request=request)

    @property
    def asked(self) -> float:
        """Since when it counts as waiting."""
        return self.created if self.first_asked is None else self.first_asked

    @property
    def is_released(self) -> bool:
        """Whether its gate is lifted. That is final: a gate can only be set at creation."""
        return not self.is_gated


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePod:
    """Lift a pod's gate, write its placement, and nominate its node."""

    uid: PodUid
    placement: Placement
    alternative: str = ""
    """The alternative by which its gang is placed, and why; empty: as it asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseHelper:
    """Lift the gate of a helper, or make kube-scheduler try it again: its gang has its places."""

    uid: PodUid


@dataclass(frozen=True, slots=True, kw_only=True)
class NominatePod:
    """Nominate a released pod's node again: kube-scheduler drops a nomination after any error.

    None clears the nomination of a pod without a place: kube-scheduler keeps other pods of the same
    priority away from a nominated node, even for a pod behind a gate.
    """

    uid: PodUid
    node: NodeName | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictPod:
    """End a member of a victim, with its grace period."""

    uid: PodUid
    victim: GangKey
    preemptor: GangKey
    reason: Reason


Action = ReleasePod | ReleaseHelper | NominatePod | EvictPod


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """The reason why a gang waits has changed: its owner is told."""

    uid: PodUid
    """The pod that carries the Event: the gang's oldest."""
    reason: Reason


@dataclass(slots=True)
class StepResult:
    """The actions to take and the notices to send after one step."""

    actions: list[Action] = field(default_factory=list)
    notices: dict[GangKey, Notice | None] = field(default_factory=dict)
    """Gangs whose reason to wait has changed; None for a gang that no longer waits."""
    has_more: bool = False
    """Whether more gangs wait to be planned than one step handles."""
    reservations: list[Reservation] = field(default_factory=list)
    """Reservations that were made, have slipped or ended."""
    moves: list[Preempt] = field(default_factory=list)
    """Gangs with a reservation for which others are moved from now on."""
    backfilled: list[GangKey] = field(default_factory=list)
    """Gangs that use cells which are reserved for later."""
    to_prepare: MemberRequest | None = None
    """The gang that is planned next, if a decision about it takes long to prepare."""
