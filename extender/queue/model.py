"""What the planner is told, and what it wants done. Immutable."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from extender.cells.model import MemberRequest, Reason
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedPod:
    """A pod that our gate holds or held, as it was last seen."""

    request: MemberRequest
    """What it asks for, as far as it alone can tell."""
    gang_size: int
    is_gated: bool
    is_ending: bool = False
    node: NodeName | None = None
    """Where it is bound."""
    nominated: NodeName | None = None
    """The node that kube-scheduler is told to look at first."""
    is_refused: bool = False
    """kube-scheduler last found no node for it, not even the nominated one."""
    placement: Placement | None = None
    """What its annotation says."""
    node_wish: Hashable = None
    """Stands for its node selector, affinity and tolerations: equal wishes, equal nodes."""
    may_preempt: bool = True
    alone: MemberRequest | None = None
    """What it asks for by itself, where its gang may have more members than it needs."""

    @property
    def uid(self) -> PodUid:
        """Which pod."""
        return self.request.member

    @property
    def created(self) -> float:
        """When it was created."""
        return self.request.created

    @property
    def is_released(self) -> bool:
        """Its gate is lifted: there is no way back, for a gate can only be set at creation."""
        return not self.is_gated


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Lift a pod's gate, tell it where to go, and nominate its node."""

    uid: PodUid
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Nominate:
    """Nominate a released pod's node again: kube-scheduler forgets it after any error.

    None for a pod that has no place, or none any more: kube-scheduler keeps a nominated node free
    from others of its priority, even for a pod that our gate holds.
    """

    uid: PodUid
    node: NodeName | None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """End a member of a victim, gracefully."""

    uid: PodUid
    victim: GangKey
    preemptor: GangKey
    reason: Reason


Action = Release | Nominate | End


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """A gang waits for another reason than before: its owner should know."""

    uid: PodUid
    """The pod that carries the Event: the gang's oldest."""
    reason: Reason


@dataclass(slots=True)
class Step:
    """What is to be done and told after one step."""

    actions: list[Action] = field(default_factory=list)
    news: dict[GangKey, Tell | None] = field(default_factory=dict)
    """Gangs that wait for another reason than before; None for a gang that waits no longer."""
    has_more: bool = False
    """There are gangs that this step had no time for."""
