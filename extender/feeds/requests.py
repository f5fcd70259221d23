"""From a pod to what is asked of the engine: its gang's size, its priority, its wishes."""

from collections.abc import Mapping
from typing import Any, Protocol

from extender.cells.model import OPPORTUNISTIC, MemberRequest, Placement, ReleaseMode
from extender.cells.observe.bound_pods import PlacedMember
from kube.read.managed_pod import DeviceUse
from kube.read.pods import ManagedPod
from policy.classes import Classes
from policy.errors import RequestError
from policy.submission import GangKey
from policy.topology import CellTypeName, ChainName, PinnedCellId


class GangSizes(Protocol):
    """Tells sizes that only a PodGroup object knows."""

    def size(self, pod: ManagedPod) -> int | None:
        """How many members the pod's gang needs to start; None if nobody says."""


def to_member_request(pod: ManagedPod, *, classes: Classes, sizes: GangSizes) -> MemberRequest:
    """Say what a pod asks of the engine; RequestError if its class is not one of the admins'."""
    return _build(pod, priority=_priority(pod, classes), size=pod.gang.size or sizes.size(pod))


def to_single_request(request: MemberRequest, pod: ManagedPod) -> MemberRequest:
    """Let a member ask for itself alone: beyond its gang's size, or in a gang of unknown size."""
    return MemberRequest(
        member=request.member,
        gang=_single_gang(pod),
        leaf_count=request.leaf_count,
        gang_leaf_counts=(request.leaf_count,),
        leaf_type=request.leaf_type,
        vc=request.vc,
        created=request.created,
        priority=request.priority,
    )


def to_bound(pod: ManagedPod, *, classes: Classes, sizes: GangSizes) -> PlacedMember:
    """Say where a pod runs, or was released to run. A fact: whatever its class, it is taken in."""
    placement = to_placement(pod)
    try:
        priority = _priority(pod, classes)
    except RequestError:
        counts = placement is not None and placement.vc_cell_type is not None
        priority = 0 if counts else OPPORTUNISTIC
    request = _build(pod, priority=priority, size=pod.gang.size or sizes.size(pod))
    where = pod.node or (pod.placement.node if pod.placement else None)
    assert where is not None, "only for pods that are bound or released"
    return PlacedMember(
        request=request, placement=placement or Placement(node=where, leaf_cells=())
    )


def to_foreign_use(use: DeviceUse, *, namespace: str) -> PlacedMember:
    """Count the devices of a pod that makes no sense to us, but runs."""
    request = MemberRequest(
        member=use.uid,
        gang=GangKey(namespace, f"misfit/{use.uid}"),
        leaf_count=use.device_count,
        gang_leaf_counts=(use.device_count,),
    )
    return PlacedMember(request=request, placement=Placement(node=use.node, leaf_cells=()))


def to_placement(pod: ManagedPod) -> Placement | None:
    """What a pod says of its placement; None if we did not place it, or it cannot be true."""
    told = pod.placement
    if told is None or pod.node not in (None, told.node) or len(told.leaf_cells) != pod.leaf_count:
        return None
    return Placement(
        node=told.node,
        leaf_cells=told.leaf_cells,
        chain=ChainName(told.chain) if told.chain else None,
        vc_cell=told.vc_cell,
        vc_cell_type=CellTypeName(told.vc_cell_type) if told.vc_cell_type else None,
    )


def _priority(pod: ManagedPod, classes: Classes) -> int:
    """With a Classes document the class decides; without one, HiveD's annotation."""
    if not classes.entries:
        return pod.hived.priority if pod.hived else 0
    name = classes.resolve(pod.class_name, path="spec.priorityClassName")
    priority = classes.cell_priority(name)
    assert priority is not None, "resolved classes are listed"
    return priority


def _build(pod: ManagedPod, *, priority: int, size: int | None) -> MemberRequest:
    return MemberRequest(
        member=pod.uid,
        gang=pod.gang.key if size else _single_gang(pod),
        leaf_count=pod.leaf_count,
        gang_leaf_counts=_gang_leaf_counts(pod, size or 1),
        gang_min=pod.gang.min_size,
        leaf_type=pod.leaf_type,
        vc=pod.vc,
        created=pod.created,
        priority=priority,
        **_hived_wishes(pod),
    )


def _single_gang(pod: ManagedPod) -> GangKey:
    return GangKey(pod.namespace, f"{pod.gang.key.name}/{pod.name}")


def _gang_leaf_counts(pod: ManagedPod, size: int) -> tuple[int, ...]:
    """HiveD's annotation tells what each member asks for; elsewhere all are like this one."""
    if pod.hived and pod.hived.gang:
        groups = pod.hived.gang.members
        return tuple(group.leaf_count for group in groups for _ in range(group.pod_count))
    return (pod.leaf_count,) * size


def _hived_wishes(pod: ManagedPod) -> Mapping[str, Any]:
    """What only HiveD's annotation can say."""
    if pod.hived is None:
        return {}
    return {
        "pinned": PinnedCellId(pod.hived.pinned_cell) if pod.hived.pinned_cell else None,
        "is_lazy": pod.hived.lazy_preemption,
        "ignores_candidates": pod.hived.ignore_candidate_nodes,
        # HiveD keeps a gang's cells until its last pod has ended, whatever the flag says.
        "release": ReleaseMode.WHOLE,
    }
