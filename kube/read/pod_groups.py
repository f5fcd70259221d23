"""PodGroups, native and of others: how large a gang is, where only its PodGroup says so.

A native one has a class, too. It cannot be changed once the group exists, and kube-scheduler takes
no group whose pods have another priority: what is decided about the pods must fit the group.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kube.read.gangs import GangForm
from kube.read.objects import mapping
from kube.read.size_limits import MAX_GANG_SIZE
from policy.submission import ClassName, GangKey

API_VERSION: Final = "scheduling.k8s.io/v1beta1"
KIND: Final = "PodGroup"
APIS: Final[Mapping[GangForm, str]] = {
    GangForm.NATIVE: API_VERSION,
    GangForm.COSCHEDULING: "scheduling.x-k8s.io/v1alpha1",
    GangForm.VOLCANO: "scheduling.volcano.sh/v1beta1",
}
"""Whose PodGroups there are, each a kind of its own that a cluster may lack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """As much of a PodGroup as admission needs."""

    key: GangKey
    min_size: int | None
    """How many pods start together; None for a group that is no gang."""
    class_name: ClassName | None


def read_pod_group(obj: Mapping[str, Any], *, namespace: str = "") -> PodGroup:
    """Translate a PodGroup; what is not understood of it is taken as not said."""
    metadata, spec = mapping(obj.get("metadata")), mapping(obj.get("spec"))
    policy = mapping(spec.get("schedulingPolicy") or spec.get("policy"))
    gang = mapping(policy.get("gang"))
    count, class_name = gang.get("minCount", spec.get("minMember")), spec.get("priorityClassName")
    is_count = type(count) is int and 1 <= count <= MAX_GANG_SIZE
    return PodGroup(
        key=GangKey(str(metadata.get("namespace") or namespace), str(metadata.get("name") or "")),
        min_size=count if is_count else None,
        class_name=ClassName(class_name) if isinstance(class_name, str) and class_name else None,
    )


class PodGroupSink:
    """Keeps the PodGroups that exist."""

    def __init__(self, *, on_change: Callable[[], None] = lambda: None) -> None:
        """`on_change` hears of what pods could see, not of every status."""
        self._groups: dict[GangKey, PodGroup] = {}
        self._on_change = on_change

    def find(self, key: GangKey) -> PodGroup | None:
        """Return a PodGroup, None if it is not known."""
        return self._groups.get(key)

    def replace(self, objects: Sequence[Mapping[str, Any]]) -> None:
        """Take a whole list: what is not in it is gone."""
        self._groups = {group.key: group for group in map(read_pod_group, objects)}
        self._on_change()

    def upsert(self, obj: Mapping[str, Any]) -> None:
        """Take note of a PodGroup that appeared or changed."""
        group = read_pod_group(obj)
        if self._groups.get(group.key) != group:
            self._groups[group.key] = group
            self._on_change()

    def remove(self, obj: Mapping[str, Any]) -> None:
        """Take note of a PodGroup that is gone."""
        self._groups.pop(read_pod_group(obj).key, None)
        self._on_change()
