"""Nodes understood: how many leaf cells a node offers, of which type, and whether it may be used.

Pure. A node with a broken number is a node without leaf cells: nobody must crash over it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kube.marks import DEFAULT_LEAF_RESOURCES
from policy.submission import LeafType, NodeName

_LEAF_TYPE_LABELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafNode:
    """A node that offers leaf cells."""

    name: NodeName
    leaf_count: int
    leaf_type: LeafType | None
    is_healthy: bool


def read_node(
    node: Mapping[str, Any], *, leaf_resources: Sequence[str] = DEFAULT_LEAF_RESOURCES
) -> LeafNode | None:
    """Understand a node; None if it offers no leaf cells."""
    metadata, status = node["metadata"], node.get("status") or {}
    allocatable = status.get("allocatable") or {}
    leaf_count = max((_whole(allocatable.get(name)) for name in leaf_resources), default=0)
    if leaf_count == 0:
        return None
    labels = metadata.get("labels") or {}
    return LeafNode(
        name=NodeName(metadata["name"]),
        leaf_count=leaf_count,
        leaf_type=next((LeafType(labels[key]) for key in _LEAF_TYPE_LABELS if key in labels), None),
        is_healthy=_is_healthy(node),
    )


def _is_healthy(node: Mapping[str, Any]) -> bool:
    """Ready and not cordoned; a node that says nothing of its readiness is not ready."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    is_ready = any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in conditions
    )
    return is_ready and not (node.get("spec") or {}).get("unschedulable", False)


def _whole(quantity: object) -> int:
    text = str(quantity or "0")
    return int(text) if text.isdecimal() else 0
