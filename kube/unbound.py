"""What matters of a pod until it is bound: its age, its nominated node, which nodes it wants."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kube.node_wishes import NodeWish, read_wish
from policy.submission import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbound:
    """A pod that is not bound."""

    created: float
    """Seconds since 1970, by the API server's clock."""
    nominated: NodeName | None
    node_wish: NodeWish


def read_unbound(pod: Mapping[str, Any]) -> Unbound:
    """Understand what the API server stored."""
    nominated = (pod.get("status") or {}).get("nominatedNodeName")
    return Unbound(
        created=_read_time(pod["metadata"].get("creationTimestamp")),
        nominated=NodeName(nominated) if nominated else None,
        node_wish=read_wish(pod),
    )


def _read_time(text: str | None) -> float:
    if not text:
        return 0.0
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
