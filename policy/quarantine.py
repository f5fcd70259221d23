"""Nodes on which members of several workloads fail at start, and which of them to quarantine. Pure.

A failure says little by itself: most workloads that fail at once would fail on every node. So a
node is blamed by a workload only if

- the kubelet refused the pod although it was bound with room: that is the node's failure; or
- the member failed before all members of its workload on other nodes, and the workload blames no
  other node. If one member fails, the others usually follow within seconds; if all fail at the same
  time, or one node after the other, the workload is to blame.

A node that enough different workloads of enough different submitters blame within the time is
quarantined, but never more than a tenth of the nodes of a leaf type, and at least one. A submitter
counts once, however many workloads fail, so that one user alone takes no node away. All service
accounts of a namespace count as one: a user who may create one may create many.

The retries of a workload avoid the nodes that this workload alone blames, if others suit.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from policy.submission import LeafType, NodeName, UserName

_SHARE: Final = 10
"""At most one in so many nodes of a leaf type is quarantined by this rule."""
_SKEW_SECONDS: Final = 60.0
"""A kubelet's clock may be ahead by so much."""
_AVOIDED_SECONDS: Final = 1800.0
"""How long the retries of a workload avoid a node that it blames."""
_AT_START_SECONDS: Final = 60.0
"""How long a container has run at most that failed at start, for retries."""
_ACCOUNT: Final = "system:serviceaccount:"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineRule:
    """When a node is quarantined, and for how long."""

    workloads: int
    submitters: int
    within_seconds: float
    fail_within_seconds: float
    for_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFailure:
    """A member that failed on a node."""

    node: NodeName
    workload: str
    submitter: UserName
    at: float
    """When it failed, in seconds since 1970."""
    lasted_seconds: float = 0.0
    """How long its container had run."""
    is_by_node: bool = False
    """Whether the kubelet refused the pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamedNode:
    """A node to quarantine, the workloads that blame it, and their submitters."""

    node: NodeName
    workloads: tuple[str, ...]
    submitters: tuple[str, ...]


def find_bad_nodes(
    failures: Iterable[StartFailure],
    rule: QuarantineRule,
    *,
    now: float,
    nodes: Mapping[NodeName, LeafType | None],
    quarantined: Collection[NodeName],
) -> list[BlamedNode]:
    """Return the nodes to quarantine now: those that most submitters blame first, then by name."""
    enough = [
        one
        for one in _count(failures, rule, now=now)
        if len(one.workloads) >= rule.workloads
        and len(one.submitters) >= rule.submitters
        and one.node in nodes
        and one.node not in quarantined
    ]
    left = _room(nodes, quarantined)
    found = []
    for one in sorted(enough, key=_by_blame):
        leaf_type = nodes[one.node]
        if left[leaf_type] > 0:
            left[leaf_type] -= 1
            found.append(one)
    return found


def find_avoided(failures: Iterable[StartFailure], *, now: float) -> list[NodeName]:
    """Return the nodes that one workload blames by its own failures of the last half hour.

    A workload that fails on one node after the other blames none: then its retries avoid none.
    """
    first, last = now - _AVOIDED_SECONDS, now + _SKEW_SECONDS
    recent = [
        one
        for one in failures
        if first <= one.at <= last and one.lasted_seconds <= _AT_START_SECONDS
    ]
    recent.sort(key=lambda one: (one.at, one.node))
    return sorted(_blamed_by(recent, _AT_START_SECONDS))


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


def _by_blame(one: BlamedNode) -> tuple[int, int, NodeName]:
    return -len(one.submitters), -len(one.workloads), one.node


def _count(
    failures: Iterable[StartFailure], rule: QuarantineRule, *, now: float
) -> Iterator[BlamedNode]:
    """Yield the nodes that workloads blame."""
    first, last = now - rule.within_seconds, now + _SKEW_SECONDS
    recent = [
        one
        for one in failures
        if first <= one.at <= last and one.lasted_seconds <= rule.fail_within_seconds
    ]
    recent.sort(key=lambda one: (one.workload, one.at, one.node, one.submitter))
    blamed: dict[NodeName, list[tuple[str, str]]] = {}
    for workload, group in groupby(recent, key=lambda one: one.workload):
        own = list(group)
        for node in _blamed_by(own, rule.fail_within_seconds):
            first_there = next(one for one in own if one.node == node)
            blamed.setdefault(node, []).append((workload, _origin(first_there.submitter)))
    for node, by in blamed.items():
        workloads, submitters = zip(*by, strict=True)
        yield BlamedNode(
            node=node, workloads=workloads, submitters=tuple(dict.fromkeys(submitters))
        )


def _origin(submitter: UserName) -> str:
    """Return under which name a submitter counts: for a service account, its namespace."""
    if not submitter.startswith(_ACCOUNT):
        return submitter
    namespace = submitter.removeprefix(_ACCOUNT).partition(":")[0]
    return f"{_ACCOUNT}{namespace}"


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
