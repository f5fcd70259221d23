"""A pod in our own words: what `kube.read.pods` makes of Kubernetes' JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kube import marks
from kube.hived.spec import HivedSpec
from kube.read.gangs import Gang
from kube.read.node_choice import NodeWish, read_wish
from kube.read.placements import Placement
from policy.errors import Problem
from policy.submission import (
    DEFAULT_VC,
    ClassName,
    GroupName,
    LeafType,
    NodeName,
    PodUid,
    UserName,
    VcName,
)


class PodPhase(StrEnum):
    """How far a pod is; a pod that is being admitted is pending."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    @property
    def is_finished(self) -> bool:
        """Whether a pod has ended and holds nothing any more."""
        return self in (PodPhase.SUCCEEDED, PodPhase.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedPod:
    """A pod that asks for leaf cells."""

    uid: PodUid
    """Empty while a pod is being admitted."""
    namespace: str
    name: str
    """Empty where Kubernetes has yet to make it from `generate_name`."""
    generate_name: str = ""
    resource_version: str = ""
    created: float = 0.0
    """Seconds since 1970; 0 while it is being admitted."""
    node: NodeName | None = None
    """Where it is bound."""
    phase: PodPhase = PodPhase.PENDING
    is_deleting: bool = False
    grace_seconds: int = 0
    """How long it was given to end, if it was told to."""
    is_gated: bool = False
    """Whether our own gate holds it; gates of others do not count."""
    is_held_by_others: bool = False
    """Whether a gate holds it that is not ours."""
    # These three are read only of pods that our gate holds or held, until they are bound.
    nominated_node: NodeName | None = field(default=None, compare=False)
    """The node that kube-scheduler looks at first."""
    is_refused: bool = field(default=False, compare=False)
    """Whether kube-scheduler last found no node for it; an error of its own does not count."""
    node_rules: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The fields of its spec that restrict which nodes it may use."""
    scheduler_name: str = marks.DEFAULT_SCHEDULER_NAME

    gang: Gang
    vc: VcName = DEFAULT_VC
    leaf_type: LeafType | None = None
    leaf_count: int
    leaf_resource: str | None = None
    """None for a HiveD pod that asks for cells but for no device of the device plugin."""
    device_count: int = 0
    """What its containers ask of it; differs from `leaf_count` where HiveD's annotation counts."""

    class_name: ClassName | None = None
    priority: int | None = None
    may_preempt: bool = True
    """False for `preemptionPolicy: Never`: it waits, and nobody is ended for it."""
    requested_class: ClassName | None = None
    decision: str | None = None
    submitter: UserName | None = None
    submitter_groups: tuple[GroupName, ...] = ()
    charged_group: GroupName | None = None

    hived: HivedSpec | None = None
    placement: Placement | None = None
    placement_problem: Problem | None = None
    """Why there is a placement annotation but no placement: recovery must see such a pod."""
    is_uncharged: bool = False
    """Whether it waits for quota: nobody has charged its gang when it was admitted."""
    is_charged_alone: bool = False
    """Whether it is charged for itself, although it carries the mark of a group."""
    is_released: bool = False
    """Whether it carries a placement of ours and no gate of ours: the planner let it go there."""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def display_name(self) -> str:
        """Name it to a human: `lab/bert-0`, or `lab/bert-*` before it has a name."""
        return f"{self.namespace}/{self.name or f'{self.generate_name}*'}"

    @property
    def node_wish(self) -> NodeWish:
        """Which nodes it may use; read on demand, since only the planner asks."""
        return read_wish(self.node_rules)

    @property
    def is_finished(self) -> bool:
        """Whether it has ended and holds nothing any more."""
        return self.phase.is_finished

    @property
    def gang_leaf_count(self) -> int | None:
        """Leaf cells of the whole gang; None while its size is not known.

        Only HiveD's annotation tells what the other members ask for; elsewhere they are taken to
        be like this one.
        """
        if self.hived is not None and self.hived.gang is not None:
            return self.hived.gang.leaf_count
        return None if self.gang.size is None else self.gang.size * self.leaf_count


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """Devices that a bound pod holds, whatever else is wrong with it."""

    uid: PodUid
    node: NodeName
    leaf_resource: str
    device_count: int
