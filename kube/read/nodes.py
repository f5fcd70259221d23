"""Nodes: which devices a node offers, of which type, and whether it may be used.

A node whose number of devices cannot be read, or be true, counts as a node without such devices.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kube import marks
from kube.marks import DEFAULT_LEAF_RESOURCES
from kube.values.objects import mapping, marks_of
from kube.values.quantities import parse_count
from kube.values.size_limits import MAX_LEAF_COUNT
from policy.submission import LeafType, NodeName

_LEAF_TYPE_LABELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name")


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeNode:
    """A node, as far as cells are concerned."""

    name: NodeName
    is_healthy: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    leaf_counts: Mapping[str, int] = field(default_factory=dict)
    """Devices by the name of their resource, bad ones included."""
    usable_count: int = 0
    """Devices that the kubelet allocates, of the resource that the node has most of."""
    leaf_type: LeafType | None = None
    quarantine: str | None = None
    """What the quarantine annotation says; a node that has one is not healthy, unless exempt."""

    @property
    def is_quarantined(self) -> bool:
        """Whether the annotation keeps gangs away from it."""
        return self.quarantine not in (None, marks.NEVER_QUARANTINE)

    @property
    def leaf_count(self) -> int:
        """Devices of the resource that the node has most of."""
        return max(self.leaf_counts.values(), default=0)


def read_node(node: Mapping[str, Any]) -> KubeNode:
    """Translate a node."""
    labels, status = node["metadata"].get("labels") or {}, node.get("status") or {}
    usable = _counts(status.get("allocatable"))
    # A bad device is not allocatable. After a restart of the kubelet, capacity may be too low.
    existing = _counts(status.get("capacity"))
    leaf_counts = {name: max(existing[name], usable[name]) for name in DEFAULT_LEAF_RESOURCES}
    told = marks_of(node, "annotations").get(marks.QUARANTINE_ANNOTATION)
    return KubeNode(
        name=NodeName(node["metadata"]["name"]),
        is_healthy=_is_healthy(node) and told in (None, marks.NEVER_QUARANTINE),
        quarantine=None if told is None else str(told),
        labels=labels,
        leaf_counts={name: count for name, count in leaf_counts.items() if count},
        usable_count=usable[max(DEFAULT_LEAF_RESOURCES, key=leaf_counts.__getitem__)],
        leaf_type=next((LeafType(labels[key]) for key in _LEAF_TYPE_LABELS if key in labels), None),
    )


def _counts(resources: object) -> dict[str, int]:
    stated = mapping(resources)
    counts = {name: parse_count(stated.get(name)) or 0 for name in DEFAULT_LEAF_RESOURCES}
    return {name: count if 0 < count <= MAX_LEAF_COUNT else 0 for name, count in counts.items()}


def _is_healthy(node: Mapping[str, Any]) -> bool:
    """Whether a node is ready and not cordoned; without a Ready condition it is not ready."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    is_ready = any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in conditions
    )
    return is_ready and not (node.get("spec") or {}).get("unschedulable", False)
