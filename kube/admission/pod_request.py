"""What a pod means for its gang: who asks, for which class and VC, and which group pays. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from kube import marks
from kube.admission.alternatives import check_alternatives
from kube.admission.pod_groups import with_group
from kube.admission.pod_shapes import check_fixed, longest_run, origin_of
from kube.admission.submitter import Sender, identify
from kube.lives.run_limits import check_checkpoint_cost, check_estimate
from kube.read.gangs import GangForm
from kube.read.managed_pod import ManagedPod, charged_gang
from kube.read.pod_groups import PodGroup
from kube.read.pod_resources import read_requests
from kube.shaping.shaper import Shaped, shape_pod
from kube.values.objects import mapping
from policy.admission.charge_request import ChargeRequest
from policy.classes import Classes
from policy.errors import RequestError
from policy.pod_resources import CPU, MEMORY, Amounts
from policy.policy import Policy
from policy.quotas.charge import CpuAndMemory
from policy.quotas.quota_table import QuotaGroup
from policy.submission import DEFAULT_VC, ClassName, GroupName, Submission, UserName
from policy.wording import quote

_GROUP_PATH = f"metadata.labels[{marks.GROUP_LABEL}]"

IsDefault = Callable[[ClassName], bool]
"""Whether the API server gives a class to pods that name none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRequest:
    """A managed pod, what it asks for on behalf of its gang, and what shapes give it."""

    pod: ManagedPod
    charge: ChargeRequest
    shaped: Shaped
    amounts: Amounts = ()
    """What the pod requests of each resource beside leaf cells, once it is shaped."""


def build_pod_request(
    obj: Mapping[str, Any],
    *,
    sender: Sender,
    request_uid: str,
    pod: ManagedPod,
    group: PodGroup | None,
    policy: Policy,
) -> PodRequest:
    """Say what a pod means for its gang; `obj` is what its submitter sent.

    Raises RequestError for a pod that asks for what its submitter may not use, or for a class that
    the Classes document does not list.
    """
    if not sender.username:
        raise RequestError.at("userInfo.username", "is required: the submitter is charged")
    _check_hived(pod)
    check_estimate(obj)
    check_checkpoint_cost(obj)
    user, groups = identify(pod, sender, policy.identity)
    _check_vc(pod, policy, user=user, groups=groups)
    check_alternatives(obj, pod, identity=policy.identity, user=user, groups=groups)
    is_open = pod.gang.size is None
    pod = with_group(pod, group, policy)
    may_grow = is_open and not pod.is_charged_alone
    has_native = pod.gang.form in (GangForm.NATIVE, GangForm.CELLGATE)
    decision = _decision_id(request_uid)
    paying = _paying_group(pod, policy, user=user, groups=groups)
    origin = origin_of(pod, user=user, groups=groups, identity=policy.identity)
    matching = policy.shapes.matching(origin)
    shapes = (*matching, *longest_run(pod, policy))
    check_fixed(pod, shapes)
    shaped = shape_pod(obj, shapes, user=origin.user)
    amounts = read_requests(mapping(obj.get("spec")) if shaped.spec is None else shaped.spec)
    submission = Submission(
        user=user,
        groups=groups,
        vc=pod.vc,
        requested_class=policy.classes.resolve(pod.class_name, path="spec.priorityClassName"),
        gang=charged_gang(pod, decision=str(decision)),
        gang_size=pod.gang.size or 1,
        leaf_count=pod.gang_leaf_count or pod.leaf_count,
        leaf_type=pod.leaf_type,
        labels=pod.labels,
        **_of_gang(pod, amounts),
    )
    charge = ChargeRequest(
        submission=submission,
        group=None if pod.is_helper else paying,
        decision=decision,
        policy=policy,
        is_alone=pod.gang.size == 1 and not may_grow,
        **_classes_of(group if has_native else None),
        member_leaf_count=pod.leaf_count if may_grow else _member_leaf_count(pod),
        **_of_member(pod, amounts),
        may_grow=may_grow,
        shapes=tuple(shape.name for shape in matching),
    )
    return PodRequest(pod=pod, charge=charge, shaped=shaped, amounts=amounts)


def _check_vc(
    pod: ManagedPod, policy: Policy, *, user: UserName, groups: tuple[GroupName, ...]
) -> None:
    missing = "" if _names_vc(pod) else marks.VC_LABEL
    policy.identity.check_vc(
        pod.vc, user=user, groups=groups, path=_vc_path(pod), missing_label=missing
    )


def _paying_group(
    pod: ManagedPod, policy: Policy, *, user: UserName, groups: tuple[GroupName, ...]
) -> QuotaGroup | None:
    return policy.quotas.find(
        user,
        groups,
        named=pod.charged_group,
        path=_GROUP_PATH,
        by_identity=policy.identity.groups_of(user, ()),
    )


def without_unlisted_default(
    pod: ManagedPod, *, classes: Classes, is_default: IsDefault
) -> ManagedPod:
    """Return a pod without a class that only Kubernetes' default for pods gave it."""
    is_given = is_unlisted_default(pod.class_name, classes=classes, is_default=is_default)
    return replace(pod, class_name=None) if is_given else pod


def is_unlisted_default(
    class_name: ClassName | None, *, classes: Classes, is_default: IsDefault
) -> bool:
    """Tell whether a class is not listed, but Kubernetes' default for pods that name none."""
    if class_name is None or not classes.entries or not is_default(class_name):
        return False
    return not classes.is_listed(class_name)


def _classes_of(group: PodGroup | None) -> dict[str, Any]:
    """Return the class that the pods of a PodGroup must have, and the highest of its gang."""
    if group is None:
        return {}
    fixed = ClassName(group.class_name or "")
    return {"fixed_class": fixed, "highest_class": group.requested_class}


def _of_member(pod: ManagedPod, amounts: Amounts) -> dict[str, Any]:
    """Return what a pod itself asks for."""
    own = dict(amounts)
    member = CpuAndMemory(cpu_millis=own.get(CPU, 0), memory_bytes=own.get(MEMORY, 0))
    return {
        "own_leaf_count": pod.leaf_count,
        "member": member,
        "is_helper": pod.is_helper,
        "late": pod.late_leaf_counts,
        "alternatives": pod.alternatives,
    }


def _of_gang(pod: ManagedPod, amounts: Amounts) -> dict[str, int]:
    """Return the CPU and memory of a whole gang, whose members are assumed to be alike."""
    own = dict(amounts)
    times, each = pod.gang_leaf_count or pod.leaf_count, max(1, pod.leaf_count)
    return {
        "cpu_millis": own.get(CPU, 0) * times // each,
        "memory_bytes": own.get(MEMORY, 0) * times // each,
    }


def _member_leaf_count(pod: ManagedPod) -> int | None:
    has_total = pod.hived is not None and pod.hived.gang is not None
    return None if has_total or pod.gang.size == 1 else pod.leaf_count


def _decision_id(uid: str) -> UUID:
    """Return the request's UID, which is a UUID if it comes from the API server."""
    try:
        return UUID(uid)
    except ValueError:
        return uuid5(NAMESPACE_URL, uid)


def _check_hived(pod: ManagedPod) -> None:
    """Raise RequestError if the kubelet would give a pod more devices than it asks cells for."""
    if pod.hived is not None and pod.leaf_count < pod.device_count:
        path = f"metadata.annotations[{marks.HIVED_SPEC_ANNOTATION}]"
        devices = f"the containers ask for {pod.device_count} {pod.leaf_resource}"
        message = f"leafCellNumber is {pod.leaf_count}, but {devices}; it must be at least as many"
        raise RequestError.at(path, message)


def _names_vc(pod: ManagedPod) -> bool:
    """Tell whether a pod or its namespace names its VC; otherwise it has the default one."""
    is_own = pod.hived is not None or bool(pod.labels.get(marks.VC_LABEL))
    return is_own or pod.vc != DEFAULT_VC


def _vc_path(pod: ManagedPod) -> str:
    """Return where a pod's VC is written."""
    if pod.hived is not None:
        return f"metadata.annotations[{marks.HIVED_SPEC_ANNOTATION}].virtualCluster"
    if pod.labels.get(marks.VC_LABEL):
        return f"metadata.labels[{marks.VC_LABEL}]"
    return f"namespace {quote(pod.namespace)}"
