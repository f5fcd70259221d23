"""Pods that are never ended to make room for other pods: those that belong to the cluster itself.

These are mirror pods of static pods, pods of DaemonSets, pods in the namespaces of Kubernetes and
Cellgate, and pods of the classes whose names begin with `system-`.
"""

from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.values.objects import items, mapping, marks_of

SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "cellgate-system")
_SYSTEM_CLASSES: Final = "system-"


def is_mirror(pod: Mapping[str, Any]) -> bool:
    """Whether a pod only shows a static pod, which its kubelet runs."""
    return marks.MIRROR_ANNOTATION in marks_of(mapping(pod), "annotations")


def is_protected(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is never ended to make room."""
    metadata, spec = (mapping(mapping(pod).get(part)) for part in ("metadata", "spec"))
    class_name = spec.get("priorityClassName")
    return (
        is_mirror(pod)
        or metadata.get("namespace") in SYSTEM_NAMESPACES
        or (isinstance(class_name, str) and class_name.startswith(_SYSTEM_CLASSES))
        or _is_of_daemon_set(metadata)
    )


def _is_of_daemon_set(metadata: Mapping[str, Any]) -> bool:
    owners = items(metadata.get("ownerReferences"))
    return any(owner.get("kind") == "DaemonSet" and owner.get("controller") for owner in owners)
