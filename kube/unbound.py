"""What matters of a pod until it is bound: its nominated node, and which nodes it wants."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kube.node_wishes import NodeWish, read_wish
from policy.submission import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbound:
    """A pod that is not bound."""

    nominated: NodeName | None
    node_wish: NodeWish


def read_unbound(pod: Mapping[str, Any]) -> Unbound:
    """Understand what the API server stored."""
    nominated = (pod.get("status") or {}).get("nominatedNodeName")
    return Unbound(
        nominated=NodeName(nominated) if nominated else None,
        node_wish=read_wish(pod),
    )
