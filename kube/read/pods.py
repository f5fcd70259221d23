"""Reads a pod: the one translation that both services use.

A pod comes in as the API server's JSON, which is not changed. It may be hostile: for any content
`read_pod` returns or raises RequestError.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kube import marks
from kube.hived import spec as hived
from kube.hived.spec import HivedSpec
from kube.lives.pod_holds import read_held_seconds, read_pod_hold
from kube.lives.pod_swaps import read_pod_swap
from kube.lives.run_limits import read_checkpoint_cost
from kube.lives.start_wishes import read_start_by
from kube.placement_annotations import parse_bind_info, parse_placement
from kube.read import gangs, submitters
from kube.read.gangs import PodMarks
from kube.read.leaf_demand import MATCHED_LABELS, LeafDemand, read_demand
from kube.read.managed_pod import DeviceUse, ManagedPod, PodPhase
from kube.read.node_choice import POD_FIELDS
from kube.read.pod_resources import read_requests
from kube.read.workloads import Workload, controller_of
from kube.values.fields import Fields, Problems
from kube.values.objects import items, mapping, marks_of
from kube.values.texts import (
    FREE_TEXT,
    LABEL_VALUE,
    NAME_PREFIX,
    NAMESPACE,
    OBJECT_NAME,
    parse_time,
)
from policy.documents.alternatives_list import read_alternatives
from policy.errors import Problem, RequestError
from policy.placement import Placement
from policy.pod_resources import CPU, MEMORY
from policy.submission import (
    DEFAULT_VC,
    ClassName,
    GroupName,
    LeafType,
    NodeName,
    PodUid,
    VcName,
)

_NO_RULES: Final[Mapping[str, Any]] = MappingProxyType({})
_REFUSED: Final = ("PodScheduled", "False", "Unschedulable")
_GATED: Final = ("PodScheduled", "False", "SchedulingGated")
_BOUND: Final = ("PodScheduled", "True")
_NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})
_SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "cellgate-system")
_SYSTEM_CLASSES: Final = "system-"
_MAX_INT32: Final = 2**31 - 1
_PHASES: Final = {"": PodPhase.PENDING} | {phase.value: phase for phase in PodPhase}


def read_pod(
    pod: Mapping[str, Any],
    *,
    namespace_labels: Mapping[str, str] = _NO_LABELS,
    request_uid: str = "",
    reads_all: bool = False,
) -> ManagedPod | None:
    """Translate a pod; None for one that is not managed, unless `reads_all`.

    A managed pod asks for leaf cells, or carries the labels of our gangs.

    Raises RequestError with every problem and its path. A pod that is being admitted may have no
    name yet, and a pod template never has one. As a gang of one it is then named by its
    `generateName`, a `*`, which no pod's name contains, and `request_uid`: the webhook passes the
    uid of the admission request, so that two such pods are two gangs.
    """
    problems = Problems()
    parts = _split(pod, problems)
    demand = read_demand(parts.spec)
    is_managed = demand.is_managed or problems.found or _has_gang_label(parts)
    if not (is_managed or reads_all):
        return None
    translated = _translate(
        parts, demand=demand, namespace_labels=namespace_labels, request_uid=request_uid
    )
    problems.check()
    return translated


def _has_gang_label(parts: "_Parts") -> bool:
    return not MATCHED_LABELS.isdisjoint(mapping(parts.metadata.values.get("labels")))


def read_device_use(pod: Mapping[str, Any]) -> DeviceUse | None:
    """Return the devices that the containers of a pod hold: for pods that `read_pod` refuses.

    None for a pod that is not bound, has ended or holds none. Raises RequestError only for content
    that no API server stores.
    """
    problems = Problems()
    parts = _split(pod, problems)
    demand = read_demand(parts.spec)
    node = parts.spec.text("nodeName", OBJECT_NAME)
    phase = _read_phase(parts.status)
    problems.check()
    if not node or demand.resource is None or phase.is_finished:
        return None
    return DeviceUse(
        uid=PodUid(parts.metadata.text("uid")),
        node=NodeName(node),
        leaf_resource=demand.resource,
        device_count=demand.device_count,
    )


def has_finished(pod: Mapping[str, Any]) -> bool:
    """Whether a pod has ended, also one that `read_pod` refuses."""
    status = pod.get("status")
    phase = status.get("phase") if isinstance(status, Mapping) else None
    return isinstance(phase, str) and phase in _PHASES and _PHASES[phase].is_finished


class _Parts(NamedTuple):
    metadata: Fields
    spec: Fields
    status: Fields
    pod: Mapping[str, Any]


def _split(pod: Mapping[str, Any], problems: Problems) -> _Parts:
    fields = Fields(pod, key="", parent=None, problems=problems)
    return _Parts(fields.fields("metadata"), fields.fields("spec"), fields.fields("status"), pod)


def _translate(
    parts: _Parts, *, demand: LeafDemand, namespace_labels: Mapping[str, str], request_uid: str
) -> ManagedPod:
    metadata, spec, status, _ = parts
    labels, annotations = metadata.texts("labels"), metadata.texts("annotations")
    hived_spec = _read_hived(annotations, demand)
    namespace = metadata.text("namespace", NAMESPACE) or marks.DEFAULT_NAMESPACE
    name = metadata.text("name", OBJECT_NAME)
    generate_name = metadata.text("generateName", NAME_PREFIX)
    placement, placement_problem = _read_placement(annotations)
    node = NodeName(spec.text("nodeName", OBJECT_NAME)) or None
    gates = {gate.text("name") for gate in spec.items("schedulingGates")}
    is_gated = marks.QUEUED_GATE in gates
    workload = Workload.parse(annotations.text(marks.WORKLOAD_ANNOTATION))
    single_name = name or f"{generate_name}*{request_uid}"
    leaf_count = hived_spec.leaf_count if hived_spec else demand.device_count
    released = marks.PLACEMENT_ANNOTATION if leaf_count else marks.RELEASED_ANNOTATION
    is_released = released in annotations.values and not is_gated
    waits = node is None and (is_gated or is_released)
    return ManagedPod(
        uid=PodUid(metadata.text("uid")),
        namespace=namespace,
        name=name,
        generate_name=generate_name,
        resource_version=metadata.text("resourceVersion"),
        created=parse_time(metadata.text("creationTimestamp")),
        node=node,
        bound_at=_read_bound_at(status) if node is not None else 0.0,
        phase=_read_phase(status),
        is_deleting=metadata.values.get("deletionTimestamp") is not None,
        grace_seconds=_read_grace(metadata),
        is_gated=is_gated,
        is_held_by_others=len(gates) > is_gated,
        nominated_node=_read_nominated(status) if waits else None,
        refusal=_read_message(status, _REFUSED) if waits else None,
        gate_message=_read_message(status, _GATED) if is_gated else None,
        node_rules=_read_node_rules(spec) if waits else _NO_RULES,
        scheduler_name=spec.text("schedulerName") or marks.DEFAULT_SCHEDULER_NAME,
        **_read_standing(parts),
        gang=gangs.read_gang(
            PodMarks(spec, labels, annotations, name, workload),
            namespace=namespace,
            single_name=single_name,
            hived=hived_spec,
        ),
        workload=workload,
        vc=_read_vc(labels, namespace_labels=namespace_labels, hived_spec=hived_spec),
        leaf_type=_read_leaf_type(labels, hived_spec),
        leaf_count=leaf_count,
        leaf_resource=demand.resource,
        device_count=demand.device_count,
        **_read_amounts(spec),
        **_read_admission(spec, labels=labels, annotations=annotations),
        **_read_wishes(metadata, annotations) | _read_forms(annotations, hived_spec),
        hived=hived_spec,
        placement=placement,
        placement_problem=placement_problem,
        is_released=is_released,
        labels=labels.values,
    )


def _read_amounts(spec: Fields) -> dict[str, Any]:
    """Read what a pod requests of CPU and memory, for limits."""
    amounts = dict(read_requests(spec.values))
    return {"cpu_millis": amounts.get(CPU, 0), "memory_bytes": amounts.get(MEMORY, 0)}


def _read_admission(spec: Fields, *, labels: Fields, annotations: Fields) -> dict[str, Any]:
    """Read who submitted a pod, in which class, and what was decided about it."""
    requested_class = annotations.text(marks.REQUESTED_CLASS_ANNOTATION, OBJECT_NAME)
    effective_class = annotations.text(marks.EFFECTIVE_CLASS_ANNOTATION, OBJECT_NAME)
    rises_to = annotations.text(marks.OVER_QUOTA_ANNOTATION, OBJECT_NAME)
    return {
        "class_name": ClassName(spec.text("priorityClassName", OBJECT_NAME)) or None,
        "priority": spec.number("priority", minimum=-_MAX_INT32 - 1, maximum=_MAX_INT32),
        "may_preempt": spec.text("preemptionPolicy") != "Never",
        "effective_class": ClassName(effective_class) or None,
        "rises_to": ClassName(rises_to) or None,
        "requested_class": ClassName(requested_class) or None,
        "decision": annotations.text(marks.DECISION_ANNOTATION, FREE_TEXT) or None,
        "submitter": submitters.read_submitter(annotations),
        "submitter_groups": submitters.read_submitter_groups(annotations),
        "charged_group": GroupName(labels.text(marks.GROUP_LABEL, LABEL_VALUE)) or None,
        "checkpoint_cost": read_checkpoint_cost(annotations.values),
        "is_uncharged": marks.UNCHARGED_ANNOTATION in annotations.values,
        "is_charged_alone": marks.ALONE_ANNOTATION in annotations.values,
    }


def _read_wishes(metadata: Fields, annotations: Fields) -> dict[str, Any]:
    """Read what users wish for a pod's gang: holds, earlier ones, a start by a time, a swap."""
    created, owner = parse_time(metadata.text("creationTimestamp")), ""
    if marks.HOLD_ANNOTATION in annotations.values:
        owner = submitters.read_submitter(annotations) or ""
    return {
        "hold": read_pod_hold(annotations.values, owner=owner, created=created),
        "held_seconds": read_held_seconds(annotations.values),
        "start_by": read_start_by(annotations.values),
        "swap": read_pod_swap(annotations.values),
        "swapped_place": str(annotations.values.get(marks.PLACE_ANNOTATION, "")),
    }


def _read_forms(annotations: Fields, hived_spec: HivedSpec | None) -> dict[str, Any]:
    """Read in which other forms a pod's gang may run, and which one it uses."""
    text = "" if hived_spec else annotations.text(marks.ALTERNATIVES_ANNOTATION)
    return {
        "alternatives": read_alternatives(text) if text else (),
        "alternative": annotations.text(marks.ALTERNATIVE_ANNOTATION),
    }


def is_mirror(pod: Mapping[str, Any]) -> bool:
    """Whether a pod only shows a static pod, which its kubelet runs."""
    return marks.MIRROR_ANNOTATION in marks_of(mapping(pod), "annotations")


def is_protected(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is never ended to make room, because it belongs to the cluster itself.

    These are mirror pods of static pods, pods of DaemonSets, pods in the namespaces of Kubernetes
    and Cellgate, and pods of the classes whose names begin with `system-`.
    """
    metadata, spec = (mapping(mapping(pod).get(part)) for part in ("metadata", "spec"))
    class_name = spec.get("priorityClassName")
    return (
        is_mirror(pod)
        or metadata.get("namespace") in _SYSTEM_NAMESPACES
        or (isinstance(class_name, str) and class_name.startswith(_SYSTEM_CLASSES))
        or _is_of_daemon_set(metadata)
    )


def _is_of_daemon_set(metadata: Mapping[str, Any]) -> bool:
    owners = items(metadata.get("ownerReferences"))
    return any(owner.get("kind") == "DaemonSet" and owner.get("controller") for owner in owners)


def _read_standing(parts: _Parts) -> Mapping[str, Any]:
    """Read as whom a pod runs, what controls it, and whether it may be ended for others."""
    controller = controller_of(parts.pod)
    return {
        "controller": controller.workload if controller else None,
        "service_account": parts.spec.text("serviceAccountName", OBJECT_NAME) or "default",
        "is_mirror": is_mirror(parts.pod),
        "is_protected": is_protected(parts.pod),
    }


def _read_hived(annotations: Fields, demand: LeafDemand) -> HivedSpec | None:
    """Read HiveD's annotation, which a pod that requests no devices must have."""
    text = annotations.text(marks.HIVED_SPEC_ANNOTATION)
    if not text:
        if demand.resource is None and demand.is_for_hived:
            words = "Annotation does not exist or is empty"
            annotations.note(marks.HIVED_SPEC_ANNOTATION, words)
        return None
    try:
        return hived.parse_spec(text)
    except RequestError as exc:
        annotations.problems.found.extend(exc.problems)
        return None


def _read_placement(annotations: Fields) -> tuple[Placement | None, Problem | None]:
    """Read our annotation, or HiveD's on a pod that HiveD bound; a problem is returned."""
    try:
        if text := annotations.text(marks.PLACEMENT_ANNOTATION):
            return parse_placement(text), None
        if text := annotations.text(marks.HIVED_BIND_INFO_ANNOTATION):
            return parse_bind_info(text), None
    except RequestError as exc:
        return None, exc.problems[0]
    return None, None


def _read_nominated(status: Fields) -> NodeName | None:
    return NodeName(status.text("nominatedNodeName", OBJECT_NAME)) or None


def _read_bound_at(status: Fields) -> float:
    for one in items(status.values.get("conditions")):
        if (one.get("type"), one.get("status")) == _BOUND:
            return parse_time(str(one.get("lastTransitionTime") or ""))
    return 0.0


def _read_message(status: Fields, condition: tuple[str, str, str]) -> str | None:
    """Return the message of a condition; None if the pod does not have it."""
    for one in items(status.values.get("conditions")):
        if (one.get("type"), one.get("status"), one.get("reason")) == condition:
            return str(one.get("message") or "")
    return None


def _read_node_rules(spec: Fields) -> Mapping[str, Any]:
    return {key: rule for key, rule in spec.values.items() if key in POD_FIELDS}


def _read_phase(status: Fields) -> PodPhase:
    return _PHASES.get(status.text("phase"), PodPhase.UNKNOWN)


def _read_grace(metadata: Fields) -> int:
    """Return the grace period; a value that the API server would not write counts as 0."""
    grace = metadata.values.get("deletionGracePeriodSeconds")
    return grace if isinstance(grace, int) and grace > 0 else 0


def _read_vc(
    labels: Fields, *, namespace_labels: Mapping[str, str], hived_spec: HivedSpec | None
) -> VcName:
    if hived_spec is not None:
        return hived_spec.vc
    vc = labels.text(marks.VC_LABEL, LABEL_VALUE)
    if not vc and namespace_labels.get(marks.VC_LABEL):
        namespace = Fields(
            {"labels": namespace_labels},
            key="namespace.metadata",
            parent=None,
            problems=labels.problems,
        )
        vc = namespace.map("labels").text(marks.VC_LABEL, LABEL_VALUE)
    return VcName(vc) if vc else DEFAULT_VC


def _read_leaf_type(labels: Fields, hived_spec: HivedSpec | None) -> LeafType | None:
    if hived_spec is not None and (hived_spec.leaf_type or hived_spec.pinned_cell):
        return None if hived_spec.pinned_cell else hived_spec.leaf_type
    return LeafType(labels.text(marks.LEAF_TYPE_LABEL, LABEL_VALUE)) or None
