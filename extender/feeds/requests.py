"""Translates a pod into a request to the engine: gang, size, priority, and HiveD's options."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, Protocol

from extender.cells.model import OPPORTUNISTIC, ForeignPod, FreeMode, MemberRequest, PlacedMember
from extender.queue.model import LeafCounts, MembersLeft
from kube import marks
from kube.read.managed_pod import ManagedPod
from kube.values.texts import parse_number
from policy.classes import Classes
from policy.errors import RequestError
from policy.placement import Placement
from policy.submission import GangKey
from policy.topology import PinnedCellId

_PARTS: Final = re.compile(r"([0-9]{1,18})|([^0-9]+)")

ToRequest = Callable[[ManagedPod], MemberRequest]


class GangSizeSource(Protocol):
    """Knows the sizes of gangs that only a PodGroup object states."""

    def size(self, pod: ManagedPod) -> int | None:
        """Return how many members the pod's gang needs to start; None if that is not stated."""


def to_member_request(pod: ManagedPod, *, classes: Classes, sizes: GangSizeSource) -> MemberRequest:
    """Build the request of a pod. Raises RequestError if its class is not listed."""
    return _build(pod, priority=_priority(pod, classes), size=pod.gang.size or sizes.size(pod))


def to_single_request(request: MemberRequest, pod: ManagedPod) -> MemberRequest:
    """Build a request for one member alone: beyond its gang's size, or if the size is unknown."""
    return MemberRequest(
        member=request.member,
        gang=single_gang(pod),
        leaf_count=request.leaf_count,
        gang_leaf_counts=(request.leaf_count,),
        leaf_type=request.leaf_type,
        vc=request.vc,
        created=request.created,
        checkpoint_cost=request.checkpoint_cost,
        priority=request.priority,
    )


def to_bound(pod: ManagedPod, *, classes: Classes, sizes: GangSizeSource) -> PlacedMember:
    """Say where a pod runs, or was released to run; a class that is not listed is no obstacle."""
    placement = to_placement(pod)
    try:
        priority = _priority(pod, classes)
    except RequestError:
        counts = placement is not None and placement.vc_cell_type is not None
        priority = 0 if counts else OPPORTUNISTIC
    request = _build(pod, priority=priority, size=pod.gang.size or sizes.size(pod))
    request = replace(request, gang_leaf_counts=_with_late(pod, request.gang_leaf_counts))
    where = pod.node or (pod.placement.node if pod.placement else None)
    assert where is not None, "only for pods that are bound or released"
    if placement is not None:
        return PlacedMember(request=request, placement=placement)
    return PlacedMember(
        request=request,
        placement=Placement(node=where, leaf_cells=()),
        foreign=ForeignPod(
            name=pod.display_name, owner=pod.charged_user, is_protected=pod.is_protected
        ),
    )


def to_placement(pod: ManagedPod) -> Placement | None:
    """Return the placement that a pod states; None if there is none, or it cannot be true."""
    told = pod.placement
    if told is None or pod.node not in (None, told.node) or len(told.leaf_cells) != pod.leaf_count:
        return None
    return told


def _priority(pod: ManagedPod, classes: Classes) -> int:
    """Return the priority of the pod's class; without a Classes document, HiveD's priority."""
    if not classes.entries:
        return pod.hived.priority if pod.hived else 0
    name = classes.resolve(pod.charged_class, path="spec.priorityClassName")
    priority = classes.cell_priority(name)
    assert priority is not None, "resolved classes are listed"
    return priority


def _build(pod: ManagedPod, *, priority: int, size: int | None) -> MemberRequest:
    return MemberRequest(
        member=pod.uid,
        gang=pod.gang.key if size else single_gang(pod),
        leaf_count=pod.leaf_count,
        gang_leaf_counts=_gang_leaf_counts(pod, size or 1),
        gang_min=pod.gang.min_size,
        leaf_type=pod.leaf_type,
        vc=pod.vc,
        created=pod.created,
        checkpoint_cost=pod.checkpoint_cost,
        priority=priority,
        **_hived_options(pod),
    )


def single_gang(pod: ManagedPod) -> GangKey:
    """Return the name under which a member is placed by itself, without its gang."""
    return replace(pod.gang.key, name=f"{pod.gang.key.name}/{pod.name}")


def _with_late(pod: ManagedPod, leaf_counts: tuple[int, ...]) -> tuple[int, ...]:
    """Return the leaf cells of each member; a pod knows those of members that are created later."""
    late = tuple(count or pod.leaf_count for count in pod.late_leaf_counts)
    if not late:
        return leaf_counts
    like_it = max(1, len(leaf_counts) - len(late))
    return (*leaf_counts[:like_it], *late)[: len(leaf_counts)]


def members_left(pods: Collection[ManagedPod], *, size: int, finished: LeafCounts) -> MembersLeft:
    """Return which members of a gang have not succeeded, by its pods with leaf cells."""
    first = min(pods, key=lambda pod: (pod.created, pod.uid))
    late = max(pods, key=lambda pod: len(pod.gang.late)).late_leaf_counts
    return MembersLeft(size=size, each=first.leaf_count, late=late, finished=finished)


def member_rank(pod: ManagedPod) -> tuple[tuple[int, str], ...]:
    """Return a member's place in its gang: its index in a Job, then the natural order of names."""
    index = parse_number(pod.labels.get(marks.JOB_INDEX_LABEL, ""))
    parts = _PARTS.findall(pod.name)
    natural = tuple((int(number), "") if number else (-1, text) for number, text in parts)
    return natural if index is None else ((index, ""), *natural)


def _gang_leaf_counts(pod: ManagedPod, size: int) -> tuple[int, ...]:
    """Return the leaf cells of each member: by HiveD's annotation, else all like this pod."""
    if pod.hived and pod.hived.gang:
        groups = pod.hived.gang.members
        return tuple(group.leaf_count for group in groups for _ in range(group.pod_count))
    return _equal_counts(pod.leaf_count, size)


@lru_cache(maxsize=16)
def _equal_counts(leaf_count: int, size: int) -> tuple[int, ...]:
    """Return one tuple for all members: many large ones would need much memory."""
    return (leaf_count,) * size


def _hived_options(pod: ManagedPod) -> Mapping[str, Any]:
    """Return the options that only HiveD's annotation has."""
    if pod.hived is None:
        return {}
    return {
        "pinned": PinnedCellId(pod.hived.pinned_cell) if pod.hived.pinned_cell else None,
        "is_lazy": pod.hived.lazy_preemption,
        "ignores_candidates": pod.hived.ignore_candidate_nodes,
        # HiveD keeps a gang's cells until its last pod has ended, whatever the flag says.
        "free_mode": FreeMode.WHOLE,
    }
