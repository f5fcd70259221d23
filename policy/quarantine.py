"""Nodes on which members of several workloads fail at start, and which of them to quarantine. Pure.

A failure says little by itself: most workloads that fail at once would fail on every node. So a
node is blamed by a workload only if

- the kubelet refused the pod although it was bound with room: that is the node's failure; or
- the member failed before all members of its workload on other nodes, and the workload blames no
  other node. If one member fails, the others usually follow within seconds; if all fail at the same
  time, or one node after the other, the workload is to blame.

A node that enough different workloads blame within the time is quarantined, but never more than a
tenth of the nodes of a leaf type, and at least one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from policy.submission import LeafType, NodeName

_SHARE: Final = 10
"""At most one in so many nodes of a leaf type is quarantined by this rule."""
_SKEW_SECONDS: Final = 60.0
"""A kubelet's clock may be ahead by so much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineRule:
    """When a node is quarantined, and for how long."""

    workloads: int
    within_seconds: float
    fail_within_seconds: float
    for_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFailure:
    """A member that failed on a node."""

    node: NodeName
    workload: str
    at: float
    """When it failed, in seconds since 1970."""
    lasted_seconds: float = 0.0
    """How long its container had run."""
    is_by_node: bool = False
    """Whether the kubelet refused the pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamedNode:
    """A node to quarantine, and the workloads that blame it."""

    node: NodeName
    workloads: tuple[str, ...]


def find_bad_nodes(
    failures: Iterable[StartFailure],
    rule: QuarantineRule,
    *,
    now: float,
    nodes: Mapping[NodeName, LeafType | None],
    quarantined: Collection[NodeName],
) -> list[BlamedNode]:
    """Return the nodes to quarantine now: those that most workloads blame first, then by name."""
    blamed = _count(failures, rule, now=now)
    enough = [
        BlamedNode(node=node, workloads=tuple(workloads))
        for node, workloads in blamed.items()
        if len(workloads) >= rule.workloads and node in nodes and node not in quarantined
    ]
    left = _room(nodes, quarantined)
    found = []
    for one in sorted(enough, key=lambda one: (-len(one.workloads), one.node)):
        leaf_type = nodes[one.node]
        if left[leaf_type] > 0:
            left[leaf_type] -= 1
            found.append(one)
    return found


def _room(
    nodes: Mapping[NodeName, LeafType | None], quarantined: Collection[NodeName]
) -> dict[LeafType | None, int]:
    """Return how many more nodes of each leaf type may be quarantined."""
    counts: dict[LeafType | None, int] = {}
    for leaf_type in nodes.values():
        counts[leaf_type] = counts.get(leaf_type, 0) + 1
    left = {leaf_type: max(1, count // _SHARE) for leaf_type, count in counts.items()}
    for node in quarantined:
        if node in nodes:
            left[nodes[node]] -= 1
    return left


def _count(
    failures: Iterable[StartFailure], rule: QuarantineRule, *, now: float
) -> dict[NodeName, list[str]]:
    """Return the workloads that blame each node."""
    first, last = now - rule.within_seconds, now + _SKEW_SECONDS
    recent = [
        one
        for one in failures
        if first <= one.at <= last and one.lasted_seconds <= rule.fail_within_seconds
    ]
    recent.sort(key=lambda one: (one.workload, one.at, one.node))
    blamed: dict[NodeName, list[str]] = {}
    for workload, own in groupby(recent, key=lambda one: one.workload):
        for node in _blamed_by(list(own), rule.fail_within_seconds):
            blamed.setdefault(node, []).append(workload)
    return blamed


def _blamed_by(failures: Sequence[StartFailure], burst_seconds: float) -> list[NodeName]:
    """Return the nodes that one workload blames."""
    refused = dict.fromkeys(one.node for one in failures if one.is_by_node)
    first = dict.fromkeys(_first_to_fail(failures, burst_seconds))
    crashed = [node for node in first if node not in refused]
    return [*refused, *(crashed if len(crashed) == 1 else ())]


def _first_to_fail(failures: Sequence[StartFailure], burst_seconds: float) -> Iterator[NodeName]:
    """Yield the node that failed first in each burst of failures, if one did."""
    begun = None
    for index, one in enumerate(failures):
        if one.is_by_node or (begun is not None and one.at - begun <= burst_seconds):
            continue
        begun = one.at
        same = {other.node for other in failures[index:] if other.at == begun}
        if len(same) == 1:
            yield one.node
