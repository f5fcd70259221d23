"""JSON patches of single fields of a pod. Pure.

Kubernetes computes `priority` and `preemptionPolicy` from the class before it calls us, and again
after we have changed the class, and refuses a pod that contradicts itself. So a patch of the class
removes both. Patching a patched pod changes nothing.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from kube.values.objects import Operation, mapping, marks_of
from policy.submission import ClassName

_DEFAULT_SCHEDULER = "default-scheduler"


def class_patch(pod: Mapping[str, Any], class_name: ClassName) -> list[Operation]:
    """Set the class; empty if the pod has it."""
    spec = pod["spec"]
    if (spec.get("priorityClassName") or "") == class_name:
        return []
    computed = [field for field in ("priority", "preemptionPolicy") if field in spec]
    return [
        {"op": "add", "path": "/spec/priorityClassName", "value": class_name},
        *({"op": "remove", "path": f"/spec/{field}"} for field in computed),
    ]


def annotations_patch(pod: Mapping[str, Any], annotations: Mapping[str, str]) -> list[Operation]:
    """Set annotations; empty if the object has them."""
    metadata = pod.get("metadata")
    if not isinstance(metadata, Mapping):
        return [{"op": "add", "path": "/metadata", "value": {"annotations": dict(annotations)}}]
    return _entries_patch(metadata, "annotations", annotations)


def labels_patch(pod: Mapping[str, Any], labels: Mapping[str, str]) -> list[Operation]:
    """Set labels, after `annotations_patch`; empty if the pod has them."""
    return _entries_patch(mapping(pod.get("metadata")), "labels", labels)


def _entries_patch(
    metadata: Mapping[str, Any], part: str, entries: Mapping[str, str]
) -> list[Operation]:
    present = mapping(metadata.get(part))
    missing = {key: value for key, value in entries.items() if present.get(key) != value}
    if not missing:
        return []
    if not present:
        return [{"op": "add", "path": f"/metadata/{part}", "value": missing}]
    return [
        {"op": "add", "path": f"/metadata/{part}/{escape_pointer(key)}", "value": value}
        for key, value in missing.items()
    ]


def unmark_patch(pod: Mapping[str, Any], annotations: Iterable[str]) -> list[Operation]:
    """Remove annotations that only Cellgate may write, and only later."""
    present = marks_of(pod, "annotations")
    return [
        {"op": "remove", "path": f"/metadata/annotations/{escape_pointer(key)}"}
        for key in annotations
        if key in present
    ]


def scheduler_patch(pod: Mapping[str, Any], scheduler_name: str) -> list[Operation]:
    """Set our scheduler on a pod that names none."""
    if pod["spec"].get("schedulerName", _DEFAULT_SCHEDULER) != _DEFAULT_SCHEDULER:
        return []
    return [{"op": "add", "path": "/spec/schedulerName", "value": scheduler_name}]


def gate_patch(pod: Mapping[str, Any], gate: str, *, is_wanted: bool) -> list[Operation]:
    """Add a scheduling gate or remove it: the submitter may not choose."""
    gates = pod["spec"].get("schedulingGates") or []
    others = [one for one in gates if one != {"name": gate}]
    if is_wanted == (len(others) < len(gates)):
        return []
    wanted = [*others, {"name": gate}] if is_wanted else others
    return [{"op": "add", "path": "/spec/schedulingGates", "value": wanted}]


def escape_pointer(key: str) -> str:
    """Escape a key for a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def apply_patch(obj: Mapping[str, Any], patch: Iterable[Operation]) -> dict[str, Any]:
    """Return an object with a patch that `kube.admission` built for it."""
    result = deepcopy(dict(obj))
    for step in patch:
        *parents, last = (_unescape(part) for part in step["path"].split("/")[1:])
        place: Any = result
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        key = int(last) if isinstance(place, list) else last
        if step["op"] == "remove":
            del place[key]
        else:
            place[key] = step["value"]
    return result


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")
