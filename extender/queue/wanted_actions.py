"""The actions that a gang needs, given the places of its members and its victims."""

from collections.abc import Iterable, Mapping
from typing import assert_never

from extender.cells.answers import moved, preempted
from extender.queue.contended_nodes import ContendedNodes
from extender.queue.member_places import is_bound, may_start, unplaced
from extender.queue.model import (
    Action,
    EvictPod,
    NominatePod,
    QueuedPod,
    ReleaseHelper,
    ReleasePod,
)
from extender.queue.ports import Cells
from extender.queue.queued_gang import QueuedGang
from extender.queue.seen_gangs import SeenGangs
from policy.queues.alternatives import read_used
from policy.submission import GangKey, PodUid


def wanted_actions(gang: QueuedGang, cells: Cells, contended: ContendedNodes) -> list[Action]:
    """Return the actions that release its members and end its victims."""
    return [
        *_for_members(gang, cells, contended),
        *void_nominations(gang, cells),
        *_for_victims(gang, cells),
        *_for_moved(gang, cells),
    ]


def has_release(actions: Iterable[Action]) -> bool:
    """Tell whether an action shows a pod to kube-scheduler."""
    return any(isinstance(action, ReleasePod | ReleaseHelper) for action in actions)


def still_preempts(gang: QueuedGang, cells: Cells) -> bool:
    """Tell whether a gang still needs its victims to end."""
    if gang.has_reserved:
        return cells.is_preempting(gang.key)
    return bool(gang.pods) and gang.is_complete


def is_wanted(action: Action, gangs: SeenGangs, cells: Cells, contended: ContendedNodes) -> bool:
    """Tell whether an action that is not finished is still useful."""
    match action:
        case EvictPod(uid=uid, preemptor=preemptor, victim=victim):
            gang = gangs.find(preemptor)
            if gang is None or uid in _moved(gang, cells):
                return gang is not None
            return victim in gang.victims and still_preempts(gang, cells)
        case ReleasePod(uid=uid, placement=placement):
            return cells.placement(uid) == placement
        case ReleaseHelper(uid=uid):
            gang = gangs.find_of(uid)
            return gang is not None and may_start(gang, cells)
        case NominatePod(uid=uid, node=node):
            gang = gangs.find_of(uid)
            return gang is not None and node == contended.nomination(gang.pods[uid])
        case _:
            assert_never(action)


def void_nominations(gang: QueuedGang, cells: Cells) -> list[Action]:
    """Return the actions that clear the nominations of pods without a place."""
    return [
        NominatePod(uid=pod.uid, node=None)
        for pod in gang.oldest_first()
        if pod.nominated is not None
        and pod.node is None
        and not cells.has_place(pod.uid)
        and not pod.is_helper
    ]


def _for_members(gang: QueuedGang, cells: Cells, contended: ContendedNodes) -> Iterable[Action]:
    for pod in gang.members():
        if pod.is_helper:
            is_asleep = pod.is_gated or pod.uid in gang.asleep
            if is_asleep and not is_bound(pod, cells) and may_start(gang, cells):
                yield ReleaseHelper(uid=pod.uid)
            continue
        placement = None if is_bound(pod, cells) else cells.placement(pod.uid)
        if placement is None:
            continue
        if pod.is_gated or pod.placement != placement or _is_misstated(gang, pod):
            yield ReleasePod(uid=pod.uid, placement=placement, alternative=gang.form_note)
        elif pod.nominated != (node := contended.nomination(pod)):
            yield NominatePod(uid=pod.uid, node=node)


def _is_misstated(gang: QueuedGang, pod: QueuedPod) -> bool:
    """Tell whether a pod states another form than that in which its gang is placed."""
    return bool(pod.forms) and read_used(pod.alternative) != gang.form


def _moved(gang: QueuedGang, cells: Cells) -> Mapping[PodUid, GangKey]:
    """Return the pods that are moved for a gang, for as long as it has no place."""
    return gang.moved if gang.moved and unplaced(gang, cells) else {}


def _for_moved(gang: QueuedGang, cells: Cells) -> Iterable[Action]:
    for uid, victim in _moved(gang, cells).items():
        if cells.is_bound(uid):
            reason = moved(victim, by=gang.first.request)
            yield EvictPod(uid=uid, victim=victim, preemptor=gang.key, reason=reason)


def _for_victims(gang: QueuedGang, cells: Cells) -> Iterable[Action]:
    for victim in gang.victims:
        own, by = cells.victim_priority(victim), gang.first.request
        for uid in filter(cells.is_bound, sorted(cells.members_of(victim))):
            yield EvictPod(
                uid=uid,
                victim=victim,
                preemptor=gang.key,
                reason=preempted(victim, by=by, own=own, is_foreign=cells.is_foreign(uid)),
            )
