"""Trims pods and nodes to what our readers read.

While a cluster is listed, a copy of every pod and node is in memory; whole ones would take
gigabytes. What is kept is passed on unchanged; the readers check it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kube import marks
from kube.read.node_choice import POD_FIELDS, trim_volumes
from kube.read.pod_resources import open_resizes
from kube.read.start_failures import STATUS_FIELDS
from kube.values.objects import items, mapping

_METADATA: Final = (
    "name", "namespace", "uid", "generateName", "resourceVersion", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "ownerReferences",
)  # fmt: skip
_POD_SPEC: Final = (
    "nodeName", "schedulerName", "schedulingGates", "schedulingGroup", "priorityClassName",
    "priority", "preemptionPolicy", "overhead", "resources", "serviceAccountName",
    "activeDeadlineSeconds",
)  # fmt: skip
# Only the planner reads these, of pods that are not bound.
_UNBOUND_STATUS: Final = ("nominatedNodeName", "conditions")
_CONDITIONS: Final = {
    "PodScheduled": ("type", "status", "lastTransitionTime"),
    "DisruptionTarget": ("type", "status", "reason", "message"),
}
_CONTAINER_LIFE: Final = ("restartCount", "state", "lastState")
_CONTAINERS: Final = ("containers", "initContainers")
_CONTAINER: Final = ("name", "image", "restartPolicy", "resources")
_CONTAINER_STATUS: Final = ("name", "allocatedResources", "resources", *_CONTAINER_LIFE)
_ANNOTATION_DOMAINS: Final = ("cellgate.io/", "hivedscheduler.microsoft.com/")
_OTHER_ANNOTATIONS: Final = frozenset((*marks.GANG_MARKS, marks.MIRROR_ANNOTATION))


def trim_node(node: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what `read.nodes` and `read.node_choice` read: a real node lists hundreds of images."""
    return {
        "metadata": _some(node["metadata"], _METADATA) | _annotations(node["metadata"]),
        "spec": _some(node.get("spec"), ("unschedulable", "taints")),
        "status": _some(node.get("status"), ("capacity", "allocatable", "conditions")),
    }


def trim_pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what `kube.read.pods`, `kube.read.pod_resources` and `kube.lives` read."""
    metadata, spec = pod["metadata"], pod.get("spec")
    is_bound = isinstance(spec, Mapping) and spec.get("nodeName")
    rules = _anti_affinity(spec) if is_bound else _rules(spec)
    return {
        "metadata": _some(metadata, _METADATA) | _annotations(metadata),
        "spec": _some(spec, _POD_SPEC) | rules | _containers(spec),
        "status": _status(pod.get("status"), is_bound=bool(is_bound)),
    }


def _status(status: object, *, is_bound: bool) -> dict[str, Any]:
    """Keep the phase; of a pod on a node also its life, of others what the planner reads."""
    if not is_bound:
        return _some(status, ("phase", *_UNBOUND_STATUS))
    kept = _some(status, ("phase", *STATUS_FIELDS)) | _life_conditions(status)
    if resizes := open_resizes(status):
        kept["conditions"] = [*resizes, *kept.get("conditions", ())]
        return kept | _container_statuses(status)
    containers = [
        _some(one, ("name", *_CONTAINER_LIFE))
        for one in items(mapping(status).get("containerStatuses"))
    ]
    return kept | ({"containerStatuses": containers} if containers else {})


def _life_conditions(status: object) -> dict[str, Any]:
    """Keep when a pod was bound, and whether a program ended it."""
    found = [
        _some(one, _CONDITIONS[kind])
        for one in items(mapping(status).get("conditions"))
        if (kind := str(one.get("type"))) in _CONDITIONS
    ]
    return {"conditions": found} if found else {}


def _container_statuses(status: object) -> dict[str, Any]:
    """Keep of a pod that is resized what its kubelet has given it, and how it failed."""
    return {
        key: [_some(one, _CONTAINER_STATUS) for one in items(mapping(status).get(key))]
        for key in ("containerStatuses", "initContainerStatuses")
    }


def _some(fields: object, keys: Iterable[str]) -> dict[str, Any]:
    if not isinstance(fields, Mapping):
        return {}
    return {key: fields[key] for key in keys if key in fields}


def _annotations(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Keep those that we read; others may be as large as the pod itself."""
    annotations = metadata.get("annotations")
    if not isinstance(annotations, Mapping):
        return {}
    kept = {
        key: text
        for key, text in annotations.items()
        if key.startswith(_ANNOTATION_DOMAINS) or key in _OTHER_ANNOTATIONS
    }
    return {"annotations": kept}


def _rules(spec: object) -> dict[str, Any]:
    """Keep of a pod that is not bound what restricts its nodes."""
    rules = _some(spec, POD_FIELDS)
    return rules | {"volumes": trim_volumes(rules["volumes"])} if "volumes" in rules else rules


def _anti_affinity(spec: object) -> dict[str, Any]:
    """Keep of a bound pod only the rules that keep other pods off its node."""
    affinity = spec.get("affinity") if isinstance(spec, Mapping) else None
    kept = _some(affinity, ("podAntiAffinity",))
    return {"affinity": kept} if kept else {}


def _containers(spec: object) -> dict[str, Any]:
    if not isinstance(spec, Mapping):
        return {}
    return {
        key: [_some(container, _CONTAINER) | _host_ports(container) for container in spec[key]]
        for key in _CONTAINERS
        if isinstance(spec.get(key), list)
    }


def _host_ports(container: object) -> dict[str, Any]:
    ports = container.get("ports") if isinstance(container, Mapping) else None
    if not isinstance(ports, list):
        return {}
    kept = [port for port in ports if isinstance(port, Mapping) and port.get("hostPort")]
    return {"ports": kept} if kept else {}
