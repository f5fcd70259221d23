"""PodGroups of Kubernetes, the coscheduling plugin and Volcano: the size of a gang.

A native PodGroup also has a class, which cannot be changed. kube-scheduler accepts no group whose
pods have another priority, so a decision about the pods must agree with the group.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kube import marks
from kube.values.objects import mapping, marks_of
from kube.values.size_limits import MAX_GANG_SIZE
from policy.submission import ClassName, GangKey

API_VERSION: Final = "scheduling.k8s.io/v1beta1"
KIND: Final = "PodGroup"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """As much of a PodGroup as admission needs."""

    key: GangKey
    min_size: int | None
    """How many pods start together; None for a group that is no gang."""
    class_name: ClassName | None
    requested_class: ClassName | None = None
    """The class that its author asked for, if Cellgate stored it with a lower one."""


def read_pod_group(obj: Mapping[str, Any], *, namespace: str = "") -> PodGroup:
    """Translate a PodGroup; a field that cannot be read counts as missing."""
    metadata, spec = mapping(obj.get("metadata")), mapping(obj.get("spec"))
    policy = mapping(spec.get("schedulingPolicy") or spec.get("policy"))
    gang = mapping(policy.get("gang"))
    count, class_name = gang.get("minCount", spec.get("minMember")), spec.get("priorityClassName")
    is_count = type(count) is int and 1 <= count <= MAX_GANG_SIZE
    return PodGroup(
        key=GangKey(str(metadata.get("namespace") or namespace), str(metadata.get("name") or "")),
        min_size=count if is_count else None,
        class_name=_class_name(class_name),
        requested_class=_class_name(
            marks_of(obj, "annotations").get(marks.REQUESTED_CLASS_ANNOTATION)
        ),
    )


def _class_name(value: object) -> ClassName | None:
    return ClassName(value) if isinstance(value, str) and value else None
