"""A gang with one change, as if it had been submitted so."""

from collections.abc import Callable
from dataclasses import replace

from extender.cells.model import MemberRequest
from extender.queue.model import QueuedPod
from extender.queue.queued_gang import QueuedGang
from extender.queue.variants.model import Change, ChangeKind
from policy.submission import LeafType, VcName


def copied(gang: QueuedGang) -> QueuedGang:
    """Return a gang of the same pods, which does not change when the planner's own does."""
    return _with_pods(gang, [*gang.pods.values()])


def has_equal_members(gang: QueuedGang) -> bool:
    """Tell whether its size can be changed: all members exist, and ask for as many leaf cells."""
    left = gang.left
    is_whole = not gang.late and left.count == left.size == len(gang.pods)
    return is_whole and len({pod.request.leaf_count for pod in _workers(gang)}) == 1


def leaf_cells_of(gang: QueuedGang) -> int:
    """Return the leaf cells of each member, if members are equal."""
    return gang.first.request.leaf_count


def members_of(gang: QueuedGang) -> int:
    """Return the number of members with leaf cells that must start together."""
    least = gang.first.request.gang_min
    workers = len(_workers(gang))
    return workers if least is None else min(workers, least)


def altered(gang: QueuedGang, change: Change) -> QueuedGang:
    """Return a gang with one change."""
    after = change.after
    match change.kind:
        case ChangeKind.MEMBERS:
            return _with_members(gang, int(after))
        case ChangeKind.LEAF_CELLS:
            return _with_requests(gang, lambda one: _resized(one, int(after)))
        case ChangeKind.LEAF_TYPE:
            return _with_requests(gang, lambda one: replace(one, leaf_type=LeafType(str(after))))
        case ChangeKind.VC:
            return _with_requests(gang, lambda one: replace(one, vc=VcName(str(after))))
        case ChangeKind.LIMIT:  # of no concern to its shape
            return gang


def _with_members(gang: QueuedGang, count: int) -> QueuedGang:
    """Keep so many members with leaf cells, of the lowest ranks, and all helpers."""
    kept = _workers(gang)[:count]
    helpers = [pod for pod in gang.lowest_first() if pod.is_helper]
    size = count + len(helpers)
    counts = tuple(pod.request.leaf_count for pod in kept)
    pods = [
        replace(
            pod,
            gang_size=size,
            request=replace(pod.request, gang_leaf_counts=counts, gang_min=None),
        )
        for pod in (*kept, *helpers)
    ]
    return _with_pods(gang, pods)


def _resized(request: MemberRequest, leaf_count: int) -> MemberRequest:
    counts = tuple(leaf_count if count else 0 for count in request.gang_leaf_counts)
    return replace(
        request,
        leaf_count=leaf_count if request.leaf_count else 0,
        gang_leaf_counts=counts,
    )


def _with_requests(
    gang: QueuedGang, change: Callable[[MemberRequest], MemberRequest]
) -> QueuedGang:
    pods = [replace(pod, request=change(pod.request)) for pod in gang.pods.values()]
    return _with_pods(gang, pods)


def _with_pods(gang: QueuedGang, pods: list[QueuedPod]) -> QueuedGang:
    found = QueuedGang(
        gang.key, refused_nodes=dict(gang.refused_nodes), finished=dict(gang.finished)
    )
    for pod in pods:
        found.put(pod)
    return found


def _workers(gang: QueuedGang) -> list[QueuedPod]:
    return [pod for pod in gang.lowest_first() if not pod.is_helper]
