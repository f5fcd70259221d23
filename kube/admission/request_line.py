"""What a pod asked for when its class was decided, in one line on the pod. Pure.

    2 leaf cells, main=2 nvidia.com/gpu, cellgate.io/gang=bert, cellgate.io/gang-size=4

`webhook.guard.pod_guard` compares the line with the pod that is about to be stored: another
webhook may have changed it. So does the API server itself (match conditions of our manifests), by
looking for each part of the line in the pod; so every part consists of what is written in the pod.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kube import marks
from kube.read.leaf_demand import MATCHED_RESOURCES
from kube.read.managed_pod import ManagedPod
from kube.values.objects import containers_of, mapping, marks_of

SEPARATOR: Final = ", "


def describe_request(obj: Mapping[str, Any], pod: ManagedPod) -> str:
    """Return the line for a pod."""
    parts = [f"{pod.leaf_count} leaf cells", *_devices(obj), *_gang_marks(obj)]
    return SEPARATOR.join(parts)


def _devices(obj: Mapping[str, Any]) -> Iterator[str]:
    for container in containers_of(mapping(obj.get("spec"))):
        limits = mapping(mapping(container.get("resources")).get("limits"))
        for resource in sorted(MATCHED_RESOURCES & limits.keys()):
            yield f"{container.get('name')}={limits[resource]} {resource}"


def _gang_marks(obj: Mapping[str, Any]) -> Iterator[str]:
    """Yield the marks that say where a pod is to run and with which others."""
    labels, annotations = marks_of(obj, "labels"), marks_of(obj, "annotations")
    found = {
        **{key: value for key, value in annotations.items() if key in marks.GANG_MARKS},
        **{key: value for key, value in labels.items() if _is_compared(key)},
    }
    group = mapping(mapping(obj.get("spec")).get("schedulingGroup")).get("podGroupName")
    if group is not None:
        found["schedulingGroup"] = group
    for key in sorted(found):
        yield f"{key}={_as_one_part(found[key])}"


def _is_compared(label: object) -> bool:
    """Tell whether a label is part of the request; the group that pays is not: we write it."""
    is_ours = isinstance(label, str) and label.startswith(marks.DOMAIN)
    return label != marks.GROUP_LABEL and (is_ours or label in marks.GANG_MARKS)


def _as_one_part(value: object) -> str:
    """Escape separators, so that no value looks like another part."""
    return str(value).replace("%", "%25").replace(",", "%2C")
