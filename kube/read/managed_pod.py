"""`ManagedPod`: all that we know of a pod, and the name under which its gang is charged.

`kube.read.pods` builds it from Kubernetes' JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from kube import marks
from kube.hived.spec import HivedSpec
from kube.lives.pod_holds import PodHold
from kube.read.gangs import DeclaredGang, GangForm
from kube.read.late_members import SAME
from kube.read.node_choice import NodeWish, read_claims, read_wish
from kube.read.workloads import Workload, WorkloadKey
from policy.errors import Problem
from policy.placement import Placement
from policy.queues.alternatives import Alternative, GangTerms, all_terms
from policy.queues.swaps import SwapRequest
from policy.submission import (
    DEFAULT_VC,
    ClassName,
    GangKey,
    GroupName,
    LeafType,
    NodeName,
    PodUid,
    UserName,
    VcName,
)


class PodPhase(StrEnum):
    """The phase of a pod; a pod that is being admitted is pending."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    @property
    def is_finished(self) -> bool:
        """Whether a pod has ended, so that it holds no devices."""
        return self in (PodPhase.SUCCEEDED, PodPhase.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedPod:
    """A pod that asks for leaf cells, or that belongs to a gang by our labels."""

    uid: PodUid
    """Empty while a pod is being admitted."""
    namespace: str
    name: str
    """Empty until Kubernetes has made it from `generate_name`."""
    generate_name: str = ""
    resource_version: str = ""
    created: float = 0.0
    """Seconds since 1970; 0 while it is being admitted."""
    node: NodeName | None = None
    """Where it is bound."""
    bound_at: float = 0.0
    """When it was bound, in seconds since 1970; 0 if that is not known."""
    phase: PodPhase = PodPhase.PENDING
    is_deleting: bool = False
    grace_seconds: int = 0
    """Its grace period, if it was deleted."""
    is_gated: bool = False
    """Whether our own scheduling gate holds it."""
    is_held_by_others: bool = False
    """Whether another scheduling gate holds it."""
    # These four are read only of pods that our gate holds or held, until they are bound.
    nominated_node: NodeName | None = field(default=None, compare=False)
    """The node that kube-scheduler looks at first."""
    refusal: str | None = field(default=None, compare=False)
    """Why kube-scheduler last found no node for it; None for an error of its own, or no refusal."""
    gate_message: str | None = field(default=None, compare=False)
    """What its condition says about why a gate holds it."""
    node_rules: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The fields of its spec that restrict which nodes it may use."""
    scheduler_name: str = marks.DEFAULT_SCHEDULER_NAME
    service_account: str = "default"
    """The account that it runs as, in its namespace."""
    is_mirror: bool = False
    """Whether it only shows a static pod, which its kubelet runs."""
    is_protected: bool = False
    """Whether it is never ended to make room (`kube.read.pods`)."""

    gang: DeclaredGang
    workload: Workload | None = None
    """Its topmost controller, as the webhook wrote it on the pod."""
    controller: Workload | None = None
    """The controller that created it."""
    vc: VcName = DEFAULT_VC
    leaf_type: LeafType | None = None
    leaf_count: int
    leaf_resource: str | None = None
    """None for a HiveD pod that asks for cells but for no device of the device plugin."""
    device_count: int = 0
    """What its containers request; `leaf_count` may differ because of HiveD's annotation."""

    cpu_millis: int = 0
    memory_bytes: int = 0
    """What it requests of its node."""

    class_name: ClassName | None = None
    priority: int | None = None
    may_preempt: bool = True
    """False for `preemptionPolicy: Never`: it waits, and no gang is preempted for it."""
    effective_class: ClassName | None = None
    """The class of its gang, if the leader has raised that one above the pod's own class."""
    rises_to: ClassName | None = None
    """The class that the quotas of its group kept from it when it was admitted."""
    requested_class: ClassName | None = None
    decision: str | None = None
    submitter: UserName | None = None
    submitter_groups: tuple[GroupName, ...] = ()
    charged_group: GroupName | None = None

    checkpoint_cost: int | None = None
    """Seconds of work that are lost if its gang is preempted; None if its owner does not say."""

    hived: HivedSpec | None = None
    placement: Placement | None = None
    placement_problem: Problem | None = None
    """Why its placement annotation cannot be read: recovery must see such a pod."""
    is_uncharged: bool = False
    """Whether its gang was not charged at admission, and waits for quota."""
    is_charged_alone: bool = False
    """Whether it is charged by itself although it belongs to a PodGroup."""
    is_released: bool = False
    """Whether the planner lifted its gate: it has our placement and not our gate."""
    hold: PodHold | None = None
    """The hold that keeps its gang out of the queue."""
    held_seconds: float = 0.0
    """For how long earlier holds of it have lasted."""
    start_by: float | None = None
    """When its owner wishes its gang to start, in seconds since 1970."""
    swap: SwapRequest | None = None
    """The swap of places that its gang asks for."""
    swapped_place: str = ""
    """The place in the queue that its gang keeps after a swap, as the leader wrote it."""
    alternatives: tuple[Alternative, ...] = ()
    """Other forms in which its gang may run."""
    alternative: str = ""
    """The one by which the pod was placed, as it states it."""
    asked: GangTerms | None = None
    """What it asks for, if its gang is placed by an alternative: then its fields differ."""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def charged_class(self) -> ClassName | None:
        """The class that its gang is charged and ranked in."""
        return self.effective_class or self.class_name

    @property
    def forms(self) -> tuple[GangTerms, ...]:
        """What it asks for, and what it asks for by each alternative; none without alternatives."""
        if not self.alternatives:
            return ()
        now = GangTerms(vc=self.vc, leaf_type=self.leaf_type, gang_min=self.gang.min_size)
        return all_terms(self.asked or now, self.alternatives)

    def in_form(self, number: int) -> "ManagedPod":
        """Return it as it is by an alternative; 0: as it asks."""
        forms = self.forms
        if number >= len(forms):
            return self
        form = forms[number]
        return replace(
            self,
            vc=form.vc,
            leaf_type=form.leaf_type,
            gang=replace(self.gang, min_size=form.gang_min),
            asked=forms[0] if number else None,
        )

    @property
    def workload_key(self) -> WorkloadKey | None:
        """Its workload in its namespace; None without one."""
        return None if self.workload is None else WorkloadKey(self.namespace, self.workload.mark)

    @property
    def inherits_vc(self) -> bool:
        """Whether its VC is that of its namespace, or the default one."""
        return self.hived is None and not self.labels.get(marks.VC_LABEL)

    @property
    def display_name(self) -> str:
        """Its name in messages: `lab/bert-0`, or `lab/bert-*` before it has a name."""
        return f"{self.namespace}/{self.name or f'{self.generate_name}*'}"

    @property
    def is_undecided(self) -> bool:
        """Whether it has a node although the webhook did not decide on it."""
        return self.node is not None and self.decision is None

    @property
    def charged_user(self) -> UserName:
        """The user that pays for it: its submitter, else the service account that it runs as."""
        account = f"system:serviceaccount:{self.namespace}:{self.service_account}"
        return self.submitter or UserName(account)

    @property
    def node_wish(self) -> NodeWish:
        """Which nodes it may use; read on demand, since only the planner asks."""
        return read_wish(self.node_rules)

    @property
    def claims(self) -> tuple[str, ...]:
        """The PersistentVolumeClaims that it uses; read on demand, while it waits."""
        return read_claims(self.node_rules.get("volumes"), pod=self.name)

    @property
    def is_refused(self) -> bool:
        """Whether kube-scheduler last found no node for it."""
        return self.refusal is not None

    @property
    def is_finished(self) -> bool:
        """Whether it has ended, so that it holds no devices."""
        return self.phase.is_finished

    @property
    def is_helper(self) -> bool:
        """Whether it belongs to a gang and asks for no leaf cells, such as a launcher."""
        return self.leaf_count == 0

    @property
    def gang_leaf_count(self) -> int | None:
        """Leaf cells of the whole gang; None while its size is not known.

        Only HiveD's annotation says what the other members ask for; otherwise they are assumed to
        ask for as much as this one, and those that are created later for what its mark says if
        that is more.
        """
        if self.hived is not None and self.hived.gang is not None:
            return self.hived.gang.leaf_count
        if self.gang.size is None:
            return None
        if self.is_helper:
            return 0
        more = sum(max(0, count - self.leaf_count) for count in self.late_leaf_counts)
        return self.gang.size * self.leaf_count + more

    @property
    def late_leaf_counts(self) -> tuple[int, ...]:
        """The leaf cells of each member that is created later, as far as the pod states them."""
        return tuple(self.leaf_count if count == SAME else count for count in self.gang.late)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """The devices of a bound pod, also of one that has problems."""

    uid: PodUid
    node: NodeName
    leaf_resource: str
    device_count: int


def charged_gang(pod: ManagedPod, *, decision: str | None = None) -> GangKey:
    """Return the key of a pod's charge, the same in the webhook and in the extender.

    A pod that Kubernetes will name (`generateName`) has no name when it is admitted. As a gang of
    one it is charged under that prefix, a `*`, which no name contains, and the id of the decision,
    which the pod then carries as an annotation; `decision` is that id while it does not. A pod of a
    PodGroup that is no gang is charged as a gang of one; an annotation says so. So is a pod that
    runs without a decision: its marks are not checked, and must not add to the charge of a gang.
    """
    decision = decision or pod.decision
    if decision is None and pod.node is not None:
        return GangKey(pod.namespace, f"foreign/{pod.name}")
    if not _is_single(pod):
        return pod.gang.key
    if pod.generate_name and decision:
        return GangKey(pod.namespace, f"{pod.generate_name}*{decision}")
    return GangKey(pod.namespace, pod.name) if pod.is_charged_alone else pod.gang.key


def _is_single(pod: ManagedPod) -> bool:
    is_lone_hived = pod.gang.form is GangForm.HIVED and (pod.hived is None or not pod.hived.gang)
    return pod.gang.form is GangForm.SINGLE or is_lone_hived or pod.is_charged_alone
