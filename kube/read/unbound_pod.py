"""What matters of a pod until it is bound: its nominated node, and which nodes it wants."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kube.read.node_choice import NodeWish, read_wish
from policy.submission import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbound:
    """A pod that is not bound."""

    nominated: NodeName | None
    is_refused: bool
    """Whether kube-scheduler last found no node for it; an error of its own does not count."""
    node_wish: NodeWish


def read_unbound(pod: Mapping[str, Any]) -> Unbound:
    """Understand what the API server stored."""
    status = pod.get("status") or {}
    nominated = status.get("nominatedNodeName")
    return Unbound(
        nominated=NodeName(nominated) if nominated else None,
        is_refused=any(map(_is_refusal, status.get("conditions") or ())),
        node_wish=read_wish(pod),
    )


def _is_refusal(condition: Mapping[str, Any]) -> bool:
    told = condition.get("type"), condition.get("status"), condition.get("reason")
    return told == ("PodScheduled", "False", "Unschedulable")
