"""Decisions about the members of a gang that have no place, one after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Protocol

from extender.cells.answers import with_facts
from extender.cells.model import (
    Decision,
    KnownSizes,
    MemberRequest,
    Place,
    Preempt,
    Reject,
    Wait,
)
from extender.queue.lines.shapes import GangShape, shape_of
from extender.queue.model import QueuedPod
from extender.queue.ports import Cells
from extender.queue.queued_gang import QueuedGang
from extender.queue.room_search import Choice
from policy.submission import NodeName, PodUid


class Search(Protocol):
    """Finds a decision about a member that respects what nodes and other gangs need."""

    def choose(self, request: MemberRequest) -> Choice:
        """Decide about a member and, if its gang has no place yet, about all of them."""


def unplaced(gang: QueuedGang, cells: Cells) -> list[QueuedPod]:
    """Return the members with leaf cells that neither run nor have a place, lowest rank first."""
    return [pod for pod in gang.lowest_first() if not _is_settled(pod, cells)]


def _is_settled(pod: QueuedPod, cells: Cells) -> bool:
    return pod.is_helper or pod.node is not None or cells.has_place(pod.uid)


def is_bound(pod: QueuedPod, cells: Cells) -> bool:
    """Tell whether a pod is bound or being bound, even if its feed does not show it yet."""
    return pod.node is not None or cells.is_bound(pod.uid)


def has_begun(gang: QueuedGang, cells: Cells) -> bool:
    """Tell whether a member with leaf cells is bound or being bound."""
    return any(is_bound(pod, cells) for pod in gang.deciding())


def may_start(gang: QueuedGang, cells: Cells) -> bool:
    """Tell whether the members of a gang that have leaf cells have their places, or run."""
    if not gang.is_complete:
        return False
    if gang.starts_whole:
        return not unplaced(gang, cells)
    return not is_too_few(gang, cells) and any(_is_settled(pod, cells) for pod in gang.deciding())


def shape_now(gang: QueuedGang, cells: Cells) -> GangShape:
    """Return what a gang asks for now."""
    holds = gang.has_begun or gang.victims or gang.has_reservation or gang.form
    is_unique = holds or gang.disagreement() is not None
    return shape_of(
        gang.first.request,
        [*(pod.request.leaf_count for pod in unplaced(gang, cells)), *gang.missing_late()],
        needs=gang.node_wishes(),
        nodes=(tuple(sorted(gang.refused_nodes)), gang.covered),
        own=gang.key if is_unique else None,
        may_preempt=gang.first.may_preempt,
        run=gang.run_class,
        forms=gang.first.forms,
    )


def unready_request(gang: QueuedGang, cells: Cells) -> MemberRequest | None:
    """Return the request that is decided first for a gang, if that takes long to prepare."""
    first = first_request(gang, cells)
    return None if first is None or cells.is_ready(first) else first


def first_request(gang: QueuedGang, cells: Cells) -> MemberRequest | None:
    """Return the request that is decided first for a gang; None if all members have places."""
    members = unplaced(gang, cells)
    return next(iter(_requests(gang, members[:1], cells, among=members)), None)


def decide_unplaced(
    gang: QueuedGang, cells: Cells, search: Search, *, now: float
) -> list[Decision]:
    """Decide about them, on nodes that all of them can use."""
    members = unplaced(gang, cells)
    requests = _requests(gang, members, cells)
    return _decide_all(cells, requests, search, is_whole=gang.starts_whole, now=now)


def preview_unplaced(gang: QueuedGang, cells: Cells, search: Search) -> Decision:
    """Return the first decision that `decide_unplaced` would make now; nothing changes.

    It is about the whole gang: all places, or the reason why the gang has none.
    """
    disagreement = gang.disagreement()
    if disagreement is not None:
        return disagreement
    choice = search.choose(_requests(gang, unplaced(gang, cells), cells)[0])
    return with_facts(choice.decision, choice.facts)


def _requests(
    gang: QueuedGang,
    members: Sequence[QueuedPod],
    cells: Cells,
    *,
    among: Sequence[QueuedPod] | None = None,
) -> list[MemberRequest]:
    """Return the requests of members, with the sizes of their gang; `among` are all unplaced."""
    sizes = _sizes(gang, members if among is None else among, cells)
    counts, least = sizes.leaf_counts, sizes.gang_min
    return [replace(pod.request, gang_leaf_counts=counts, gang_min=least) for pod in members]


def _sizes(gang: QueuedGang, members: Sequence[QueuedPod], cells: Cells) -> KnownSizes:
    """Return the sizes of a gang; those with which it got its places, if it has some.

    Members that have succeeded since then, or before the gang was placed, are no difference.
    """
    known = cells.known_sizes(gang.key)
    if known is not None and all(pod.request.leaf_count in known.leaf_counts for pod in members):
        return known
    is_incremental = gang.first.request.gang_min is not None
    return KnownSizes(gang.leaf_counts(), gang.least if is_incremental else None)


def _decide_all(
    cells: Cells,
    requests: Sequence[MemberRequest],
    search: Search,
    *,
    is_whole: bool,
    now: float,
) -> list[Decision]:
    """Decide about each member; the decision about the first one places the whole gang.

    A preemption or a rejection ends the loop. After a member that has to wait, smaller members may
    still get places if the gang may start without that member.
    """
    decisions: list[Decision] = []
    too_large = inf
    held: dict[NodeName, None] | None = None
    seats: Mapping[PodUid, NodeName] = {}
    for request in requests:
        if request.leaf_count >= too_large:
            continue
        own = {seats[request.member]: None} if request.member in seats else held
        choice = search.choose(request) if own is None else _held(cells, request, own, now=now)
        decision = cells.apply(
            choice.decision,
            candidate_nodes=choice.candidates,
            now=now,
            limits=choice.limits,
            parts=choice.parts,
            kept=choice.kept,
            facts=choice.facts,
        )
        decisions.append(decision)
        if isinstance(decision, Wait) and not is_whole:
            too_large = request.leaf_count
        elif not isinstance(decision, Place):
            break
        elif decision.others:
            places = (decision.placement, *decision.others)
            held, seats = dict.fromkeys(place.node for place in places), choice.seats
    return decisions


def _held(
    cells: Cells, request: MemberRequest, nodes: dict[NodeName, None], *, now: float
) -> Choice:
    """Give a member one of the places that the first decision holds for its gang."""
    decision = cells.plan(request, candidate_nodes=nodes, now=now)
    return Choice(decision=decision, candidates=nodes)


def is_too_few(gang: QueuedGang, cells: Cells) -> bool:
    """Tell whether fewer members of a gang run or have places than it needs to start."""
    placed = [pod for pod in gang.pods.values() if _is_settled(pod, cells)]
    return not gang.has_begun and len(placed) < gang.least


def refusal(decisions: Sequence[Decision]) -> Wait | Reject | Preempt | None:
    """Return the last decision that places no member: the one to report."""
    refused = (one for one in reversed(decisions) if not isinstance(one, Place))
    return next(refused, None)
