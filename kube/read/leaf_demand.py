"""How many leaf cells a pod asks for, counted as Kubernetes counts effective requests.

Containers run together, so they add up, and so do sidecars (init containers that restart always).
An ordinary init container runs alone, but for the sidecars that started before it:

    effective = max(containers + sidecars, each init container + sidecars before it) + overhead

A container with a limit but no request asks for its limit. The pod's own `spec.resources` is not
read: it has no extended resources. Devices of resource claims (DRA) are not requested in this way.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from kube import marks
from kube.values.fields import Fields
from kube.values.objects import containers_of, mapping, marks_of
from kube.values.quantities import parse_count
from kube.values.size_limits import MAX_LEAF_COUNT
from kube.values.texts import range_problem

MATCHED_RESOURCES: Final = frozenset({*marks.DEFAULT_LEAF_RESOURCES, marks.HIVED_ENABLE_RESOURCE})
"""The resources that make a pod a managed one."""
MATCHED_LABELS: Final = frozenset({marks.GANG_LABEL, marks.GANG_SIZE_LABEL})
"""The labels that make a pod a managed one: without leaf cells, it is a helper of its gang."""


class LeafDemand(NamedTuple):
    """The leaf resource that a pod asks for and how much of it; whether it is a pod for HiveD."""

    resource: str | None = None
    device_count: int = 0
    is_for_hived: bool = False

    @property
    def is_managed(self) -> bool:
        """Whether Cellgate manages the pod."""
        return self.device_count > 0 or self.is_for_hived


class _Role(Enum):
    MAIN = auto()
    SIDECAR = auto()
    INIT = auto()
    OVERHEAD = auto()


class _Part(NamedTuple):
    """A part of a pod that requests resources: how much of each, and in which fields."""

    role: _Role
    asked: Mapping[str, Any]
    fields: Fields
    keys: tuple[str, ...]

    def amount(self, resource: str) -> int:
        count = parse_count(self.asked[resource])
        if count is None or not 0 <= count <= MAX_LEAF_COUNT:
            key = next(key for key in self.keys if resource in self.fields.mapping(key))
            problem = range_problem(self.asked[resource], minimum=0, maximum=MAX_LEAF_COUNT)
            self.fields.map(key).note(resource, problem)
            return 0
        return count


def is_matched(pod: Mapping[str, Any]) -> bool:
    """Whether the conditions of our webhook configuration match a pod or a template."""
    if not MATCHED_LABELS.isdisjoint(marks_of(pod, "labels")):
        return True
    spec = mapping(pod.get("spec"))
    resources = (mapping(one.get("resources")) for one in containers_of(spec))
    limits = (mapping(one.get("limits")) for one in resources)
    return any(not MATCHED_RESOURCES.isdisjoint(limit) for limit in limits)


def read_demand(spec: Fields) -> LeafDemand:
    """Count what the containers of a pod spec ask for; its problems are noted, not raised."""
    parts = _read_parts(spec)
    asked = {
        name: n for name in marks.DEFAULT_LEAF_RESOURCES if (n := _effective_request(parts, name))
    }
    if len(asked) > 1:
        spec.note("containers", f"must ask for one leaf resource only, not {' and '.join(asked)}")
    resource, count = next(iter(asked.items()), (None, 0))
    if count > MAX_LEAF_COUNT:
        spec.note("containers", f"must ask for at most {MAX_LEAF_COUNT} {resource}, not {count}")
    return LeafDemand(resource, count, _effective_request(parts, marks.HIVED_ENABLE_RESOURCE) > 0)


def _read_parts(spec: Fields) -> list[_Part]:
    parts = [_read_container(container, _Role.MAIN) for container in spec.items("containers")]
    for container in spec.items("initContainers"):
        is_sidecar = container.values.get("restartPolicy") == "Always"
        parts.append(_read_container(container, _Role.SIDECAR if is_sidecar else _Role.INIT))
    if overhead := spec.mapping("overhead"):
        parts.append(_Part(_Role.OVERHEAD, overhead, spec, ("overhead",)))
    return parts


def _read_container(container: Fields, role: _Role) -> _Part:
    resources = container.fields("resources")
    asked = {**resources.mapping("limits"), **resources.mapping("requests")}
    return _Part(role, asked, resources, ("requests", "limits"))


def _effective_request(parts: Sequence[_Part], resource: str) -> int:
    total = peak = sidecars = overhead = 0
    for part in parts:
        if part.asked.get(resource) is None:
            continue
        amount = part.amount(resource)
        if part.role is _Role.MAIN:
            total += amount
        elif part.role is _Role.SIDECAR:
            sidecars += amount
        elif part.role is _Role.INIT:
            peak = max(peak, sidecars + amount)
        else:
            overhead += amount
    return max(total + sidecars, peak) + overhead
