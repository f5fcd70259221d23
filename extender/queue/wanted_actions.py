"""What is to be done for a gang, by where its members have their places and whom it preempts."""

from collections.abc import Iterable

from extender.queue.contended_nodes import ContendedNodes
from extender.queue.model import Action, End, Nominate, QueuedPod, Release
from extender.queue.ports import Cells
from extender.queue.queued_gang import QueuedGang
from extender.queue.reasons import preempted


def is_bound(pod: QueuedPod, cells: Cells) -> bool:
    """Tell whether a pod is bound or about to be, though its feed may not say so yet."""
    return pod.node is not None or cells.is_bound(pod.uid)


def wanted_actions(gang: QueuedGang, cells: Cells, contended: ContendedNodes) -> list[Action]:
    """Return what lets its members go to their places, and what ends its victims."""
    return [
        *_for_members(gang, cells, contended),
        *void_nominations(gang, cells),
        *_for_victims(gang, cells),
    ]


def still_preempts(gang: QueuedGang, cells: Cells) -> bool:
    """Tell whether a gang that has victims has what it reserved; if it could not, its members."""
    if gang.has_reserved:
        return cells.is_preempting(gang.key)
    return bool(gang.pods) and gang.is_complete


def is_end_wanted(action: End, cells: Cells, *, preemptor: QueuedGang | None) -> bool:
    """Tell whether an end that was not begun yet, or done by half, still makes sense.

    `preemptor` is the gang for which it is wanted, if that is still there.
    """
    return (
        preemptor is not None
        and action.victim in preemptor.victims
        and still_preempts(preemptor, cells)
    )


def void_nominations(gang: QueuedGang, cells: Cells) -> list[Action]:
    """Return what takes nominations from pods that have no place."""
    return [
        Nominate(uid=pod.uid, node=None)
        for pod in gang.oldest_first()
        if pod.nominated is not None and pod.node is None and not cells.has_place(pod.uid)
    ]


def _for_members(gang: QueuedGang, cells: Cells, contended: ContendedNodes) -> Iterable[Action]:
    for pod in gang.members():
        placement = None if is_bound(pod, cells) else cells.placement(pod.uid)
        if placement is None:
            continue
        if pod.is_gated or pod.placement != placement:
            yield Release(uid=pod.uid, placement=placement)
        elif pod.nominated != (node := contended.nomination(pod)):
            yield Nominate(uid=pod.uid, node=node)


def _for_victims(gang: QueuedGang, cells: Cells) -> Iterable[Action]:
    for victim in gang.victims:
        for uid in filter(cells.is_bound, sorted(cells.members_of(victim))):
            yield End(
                uid=uid,
                victim=victim,
                preemptor=gang.key,
                reason=preempted(victim, by=gang.first.request),
            )
