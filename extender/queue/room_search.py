"""Finds a decision about a member that respects the room on nodes beside leaf cells.

The engine knows leaf cells; `ports.Nodes` knows CPU, memory and the rest. So the engine is offered
only nodes that have room for a member. Where that is not enough, nodes are offered on which gangs
could end, and the engine may name victims there: they free CPU and memory, too. In both cases the
plan is checked: all members that are to be on one node must have room there together, next to the
pods that stay. A node that fails is left out, and the engine plans again, a few times at most.

Nodes on which members of the same workload failed at start are tried last.

If a gang waits only because of the room beside leaf cells, the decision says what nodes lack.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from extender.cells.model import (
    NO_FACTS,
    OPPORTUNISTIC,
    Decision,
    MemberRequest,
    Part,
    Place,
    Preempt,
    Reject,
    Seat,
    Victims,
    Wait,
    WaitFacts,
)
from extender.queue.model import QueuedPod
from extender.queue.ports import Cells, Nodes
from extender.queue.queued_gang import QueuedGang
from policy.submission import NodeName, PodUid

Offer = Callable[..., Collection[NodeName]]

_TRIES = 12
_NO_NODES: dict[NodeName, None] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A decision that is not applied yet, and what it was based on."""

    decision: Decision
    candidates: Collection[NodeName]
    limits: Mapping[NodeName, int] = field(default_factory=dict)
    parts: Sequence[Part] = ()
    """The members by the nodes that they may use, where they were placed apart."""
    seats: Mapping[PodUid, NodeName] = field(default_factory=dict)
    """The node of each member, where they were placed apart."""
    kept: Sequence[Seat] = ()
    """Seats of other gangs that were left alone."""
    facts: WaitFacts = NO_FACTS
    """What the reason says beyond what the engine knows."""


class RoomSearch:
    """Decides about the members of one gang that have no place."""

    def __init__(
        self,
        gang: QueuedGang,
        members: Sequence[QueuedPod],
        *,
        cells: Cells,
        nodes: Nodes,
        now: float,
        closed: Collection[NodeName] = (),
        avoided: Collection[NodeName] = (),
    ) -> None:
        """`closed` nodes are not used, `avoided` ones only if no others suit."""
        self._kept: Sequence[Seat] = ()
        self._victims = Victims.BEST
        self._asked: PodUid | None = None
        self._offers: dict[tuple[Offer, tuple[NodeName, ...]], Collection[NodeName]] = {}
        """What nodes offered for the member that was asked about last."""
        self._gang = gang
        self._members = members
        self._cells = cells
        self._nodes = nodes
        self._now = now
        is_free = gang.first.request.ignores_candidates
        self._needs: tuple[Hashable, ...] = () if is_free else tuple(_by_need(members))
        closed = [*nodes.closed_to([pod.uid for pod in members]), *closed]
        self._closed = {**gang.refused_nodes, **dict.fromkeys(closed)}
        failed = () if is_free else (node for pod in members for node in pod.avoids)
        self._avoided = [
            node for node in dict.fromkeys((*failed, *avoided)) if node not in self._closed
        ]

    def choose(
        self,
        request: MemberRequest,
        kept: Sequence[Seat] = (),
        *,
        victims: Victims = Victims.BEST,
    ) -> Choice:
        """Decide about a member and, if its gang has no place yet, about all of them.

        `kept` are seats of other gangs that it leaves alone. If any victims do, a decision that
        names some is not to be applied.
        """
        self._kept, self._victims = kept, victims
        if request.member != self._asked:
            self._asked = request.member
            self._offers.clear()
        if self._cells.is_preempting(self._gang.key):
            reserved = self._search(request, self._nodes.freeable)
            if not isinstance(reserved.decision, Wait):
                return reserved
        elsewhere = self._search_elsewhere(request) if self._avoided else None
        if elsewhere is not None:
            return elsewhere
        found = self._search(request, self._nodes.fitting)
        if isinstance(found.decision, Place | Reject):
            return found
        apart = self._search_apart(request)
        if apart is not None:
            return apart
        all_nodes = self._nodes.suiting(self._needs, without=self._closed)
        if len(all_nodes) == len(found.candidates):
            return found
        if self._gang.first.may_preempt and request.priority != OPPORTUNISTIC:
            freed = self._search(request, self._nodes.freeable)
            if isinstance(freed.decision, Preempt):
                return freed
        return self._explained(request, found, all_nodes)

    def _search_elsewhere(self, request: MemberRequest) -> Choice | None:
        """Find a place on nodes that are not avoided."""
        victims, self._victims = self._victims, Victims.NONE
        found = self._search(request, self._nodes.fitting, without=self._avoided)
        self._victims = victims
        return found if isinstance(found.decision, Place) else None

    def _search_apart(self, request: MemberRequest) -> Choice | None:
        """Place members that need different nodes each on its own; None if they do not fit so."""
        by_need = _by_need(self._members)
        is_whole = len(self._members) == len(request.gang_leaf_counts)
        if len(self._needs) < 2 or not is_whole or self._cells.known_sizes(self._gang.key):
            return None
        asking = next(need for need in by_need if _holds(by_need[need], request.member))
        groups = [by_need.pop(asking), *by_need.values()]
        closed = dict(self._closed)
        for _ in range(_TRIES):
            parts = [self._part(group, closed) for group in groups]
            decision = self._cells.plan(
                request,
                candidate_nodes=parts[0].nodes,
                now=self._now,
                parts=parts,
                kept=self._kept,
            )
            if not isinstance(decision, Place):
                return None
            seats = _seats_apart(decision, groups)
            crowded = self._nodes.crowded(seats.items(), needs=self._needs, ending=())
            if not crowded:
                nodes = parts[0].nodes
                return Choice(
                    decision=decision,
                    candidates=nodes,
                    parts=parts,
                    seats=seats,
                    kept=self._kept,
                )
            closed.update(dict.fromkeys(crowded, 0.0))
        return None

    def _part(self, members: Sequence[QueuedPod], closed: Collection[NodeName]) -> Part:
        nodes = self._nodes.fitting([members[0].node_wish], without=closed)
        return Part(sizes=tuple(pod.request.leaf_count for pod in members), nodes=nodes)

    def _explained(
        self, request: MemberRequest, found: Choice, all_nodes: Collection[NodeName]
    ) -> Choice:
        """Say what nodes lack if the gang could start, or preempt, but for that."""
        is_waiting = isinstance(found.decision, Wait)
        if not is_waiting or isinstance(self._plan(request, all_nodes), Wait):
            return found
        shortage = self._nodes.shortage(self._needs, without=self._closed)
        return replace(found, facts=WaitFacts(shortage=shortage))

    def _search(
        self,
        request: MemberRequest,
        offer: Offer,
        *,
        without: Collection[NodeName] = (),
    ) -> Choice:
        """Plan on the nodes of an offer, with no more members on a node than have room there.

        The engine puts members close together. A node on which they lack room is left out at first.
        Once the nodes that were left out can take all members, the engine plans on these alone,
        with a limit for each of them.
        """
        closed, limits = {**self._closed, **dict.fromkeys(without, 0.0)}, dict[NodeName, int]()
        for _ in range(_TRIES):
            candidates = self._offered(offer, {**closed, **dict.fromkeys(limits)})
            decision = self._plan(request, candidates)
            crowded = self._crowded(decision)
            if not crowded and not (limits and isinstance(decision, Wait)):
                return Choice(decision=decision, candidates=candidates, kept=self._kept)
            closed.update({node: 0.0 for node, count in crowded.items() if not count})
            limits |= {node: count for node, count in crowded.items() if count}
            is_last = not crowded
            if is_last or sum(limits.values()) >= len(self._members):
                nodes = {**dict.fromkeys(candidates if is_last else ()), **dict.fromkeys(limits)}
                limited = self._within(request, nodes, limits)
                if limited is not None:
                    return limited
            if is_last:
                break
        decision = self._plan(request, _NO_NODES)
        return Choice(decision=decision, candidates=_NO_NODES, kept=self._kept)

    def _offered(self, offer: Offer, without: Collection[NodeName]) -> Collection[NodeName]:
        """Return the nodes of an offer; they are the same until a decision is applied."""
        key = offer, tuple(without)
        if key not in self._offers:
            self._offers[key] = offer(self._needs, without=without)
        return self._offers[key]

    def _within(
        self, request: MemberRequest, nodes: dict[NodeName, None], counts: dict[NodeName, int]
    ) -> Choice | None:
        """Plan with at most so many members on some nodes; None if that fails."""
        size = max(pod.request.leaf_count for pod in self._members)
        limits = {node: count * size for node, count in counts.items()}
        decision = self._cells.plan(
            request, candidate_nodes=nodes, now=self._now, limits=limits, kept=self._kept
        )
        if not isinstance(decision, Place) or self._crowded(decision):
            return None
        return Choice(decision=decision, candidates=nodes, limits=limits, kept=self._kept)

    def _plan(self, request: MemberRequest, candidates: Collection[NodeName]) -> Decision:
        return self._cells.plan(
            request,
            candidate_nodes=candidates,
            now=self._now,
            kept=self._kept,
            victims=self._victims,
        )

    def _crowded(self, decision: Decision) -> Mapping[NodeName, int]:
        """Return the nodes that lack room for what a decision puts there, and how many fit."""
        if not self._needs:
            return {}
        match decision:
            case Place(placement=own, others=others):
                places = [(one.node, len(one.leaf_cells)) for one in (own, *others)]
                seats = self._seats(decision.request, places)
                return self._nodes.crowded(seats, needs=self._needs, ending=())
            case Preempt(seats=reserved, nodes=nodes, victims=victims):
                places = [
                    (node, len(seat.leaves)) for node, seat in zip(nodes, reserved, strict=True)
                ]
                seats = self._seats(decision.request, places)
                ending = {uid for victim in victims for uid in self._cells.members_of(victim)}
                return self._nodes.crowded(seats, needs=self._needs, ending=ending)
        return {}

    def _seats(
        self, request: MemberRequest, places: Sequence[tuple[NodeName, int]]
    ) -> Iterator[tuple[PodUid, NodeName]]:
        """Give each place to a member of its size; missing members are like the asking one."""
        waiting: dict[int, list[PodUid]] = {}
        for pod in self._members:
            if pod.uid != request.member:
                waiting.setdefault(pod.request.leaf_count, []).append(pod.uid)
        waiting.setdefault(request.leaf_count, []).insert(0, request.member)
        for node, size in places:
            left = waiting.get(size)
            yield left.pop(0) if left else request.member, node


def _by_need(members: Sequence[QueuedPod]) -> dict[Hashable, list[QueuedPod]]:
    """Return the members that have leaf cells by what they need of their nodes."""
    found: dict[Hashable, list[QueuedPod]] = {}
    for pod in members:
        if not pod.is_helper:
            found.setdefault(pod.node_wish, []).append(pod)
    return found


def _holds(members: Sequence[QueuedPod], uid: PodUid) -> bool:
    return any(pod.uid == uid for pod in members)


def _seats_apart(decision: Place, groups: Sequence[Sequence[QueuedPod]]) -> dict[PodUid, NodeName]:
    """Return the node of each member: the engine lists places by part, the largest first."""
    asking = decision.request.member
    seats = {asking: decision.placement.node}
    places = iter(decision.others)
    for group in groups:
        for pod in sorted(group, key=lambda pod: -pod.request.leaf_count):
            if pod.uid != asking:
                seats[pod.uid] = next(places).node
    return seats
