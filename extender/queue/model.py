"""Input and output of the planner: pods, actions, notices. Immutable."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from extender.cells.model import MemberRequest, Reason
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid

PodRank = tuple[tuple[int, str], ...]
"""Compares as the numbers and texts in it: the natural order of names."""


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
    first_asked: float | None = None
    """When its workload first asked, if an earlier pod of it ended for another gang."""

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
