"""Moves of opportunistic gangs that let a gang with a reservation start earlier.

Only opportunistic gangs need moves: a guaranteed gang preempts opportunistic ones within what its
VC was promised, and what other guaranteed gangs hold is not moved. A move ends a whole gang, which
goes back into the queue with its age and is expected to fit elsewhere. It costs the work that is
lost: on each leaf cell what its owner says (`checkpoint_cost`), and never more than the gang has
run; without such a statement all that it has run.

Moves are proposed, or performed if the document says so: then the reservation gets the cells that
become free, so that no other gang takes them. One step searches moves for one reservation, and for
each only now and then.
"""

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Protocol

from extender.cells.answers import preempt
from extender.cells.model import OPPORTUNISTIC, MovableGang, Moves
from extender.queue.member_places import first_request
from extender.queue.model import StepResult
from extender.queue.order.ranking import Ranking
from extender.queue.ports import Cells, Nodes, RunTimes
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.model import Reservation, ReservationStep
from extender.queue.seen_gangs import SeenGangs
from policy.queues.durations import format_duration
from policy.queues.queues import DefragmentationMode, DefragmentationRules, Queues
from policy.submission import GangKey, NodeName
from policy.wording import count_of, listing

_SEARCH_SECONDS = 30.0
_LEAST_GAIN_SECONDS = 60.0
"""A start that is earlier by less is not worth a move."""
_PATIENCE_SECONDS = 300.0
"""How long after the grace moved gangs may take to end; then moves are searched anew."""
_MOST_LOOKED_AT = 2_000
_MOST_MOVABLE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedMoves:
    """Moves that were found for a gang with a reservation."""

    moves: Moves
    found_at: float
    is_performed: bool


def moves_sentence(found: ProposedMoves, *, names: Sequence[str] | None = None) -> str:
    """Say what moves would bring and cost; without names, other users' gangs are only counted."""
    gangs = found.moves.gangs
    which = count_of(len(gangs), "opportunistic gang") + (f" ({listing(names)})" if names else "")
    cost = f"this loses {format_duration(found.moves.cost)} of leaf-cell time"
    if found.is_performed:
        return f"Cellgate moves {which} elsewhere, so that the gang starts earlier; {cost}"
    return (
        f"the gang could start now if {which} ran elsewhere; {cost}; Cellgate does this with "
        "`defragmentation: {mode: perform}` in the Queues document"
    )


class Kept(Protocol):
    """The reservations in force."""

    def __contains__(self, gang: GangKey) -> bool:
        """Tell whether a gang has a reservation."""

    def in_force(self) -> list[Reservation]:
        """Return all reservations."""

    def put(self, one: Reservation, step: ReservationStep) -> None:
        """Change a reservation."""


class Defragmentation:
    """Finds moves, and has them performed if the document says so."""

    def __init__(
        self,
        cells: Cells,
        nodes: Nodes,
        run_times: RunTimes,
        *,
        seen: SeenGangs,
        ranking: Ranking,
        reservations: Kept,
    ) -> None:
        self._cells = cells
        self._nodes = nodes
        self._run_times = run_times
        self._seen = seen
        self._ranking = ranking
        self._reservations = reservations
        self._found: dict[GangKey, ProposedMoves] = {}
        self._next: dict[GangKey, float] = {}
        """When moves for a gang are searched again."""
        self._rules: DefragmentationRules | None = None
        """The rules by which moves were searched last."""

    @property
    def _now(self) -> float:
        return self._ranking.now

    @property
    def _queues(self) -> Queues:
        return self._ranking.order.queues

    def find(self, gang: GangKey) -> ProposedMoves | None:
        """Return the moves that would let a gang start earlier, as last found."""
        return self._found.get(gang)

    def update(self, step: StepResult) -> None:
        """Search moves for one reservation, if it is time, and forget those of others."""
        rules = self._queues.defragmentation
        if rules != self._rules:
            self._rules, self._next = rules, dict.fromkeys(self._next, 0.0)
        is_off = rules.mode is DefragmentationMode.OFF
        for key in [key for key in self._next if is_off or key not in self._reservations]:
            self._forget(key)
        for one in [] if is_off else self._reservations.in_force():
            if one.domain is None and self._is_due(one.gang):
                self._next[one.gang] = self._now + _SEARCH_SECONDS
                self._search(one, step)
                return

    def _is_due(self, key: GangKey) -> bool:
        left = self._next.get(key, 0.0) - self._now
        longest = _SEARCH_SECONDS + self._queues.preemption.grace + _PATIENCE_SECONDS
        return not 0.0 < left <= longest  # a clock may go back

    def _forget(self, key: GangKey) -> None:
        del self._next[key]
        self._found.pop(key, None)
        gang = self._seen.find(key)
        if gang is not None:
            gang.moved = {}

    def _search(self, one: Reservation, step: StepResult) -> None:
        gang = self._seen.find(one.gang)
        if gang is None:
            return
        gang.moved = {}
        self._found.pop(one.gang, None)
        moves = self._moves(one, gang) if self._would_gain(one, gang) else None
        if moves is None:
            return
        rules = self._queues.defragmentation
        is_performed = rules.mode is DefragmentationMode.PERFORM
        found = ProposedMoves(moves=moves, found_at=self._now, is_performed=is_performed)
        self._found[one.gang] = found
        if is_performed:
            self._perform(one, gang, moves, step)

    def _would_gain(self, one: Reservation, gang: QueuedGang) -> bool:
        """Tell whether a gang could start earlier by a move.

        Once its promise has slipped, an early start that is promised says little. Whether the gang
        may preempt does not matter: the admins decide on moves, and no opportunistic gang preempts.
        """
        least = self._queues.preemption.grace + _LEAST_GAIN_SECONDS
        promised = None if one.slips else one.promised
        is_late = promised is None or promised - self._now >= least
        return is_late and not gang.has_begun

    def _moves(self, one: Reservation, gang: QueuedGang) -> Moves | None:
        request = first_request(gang, self._cells)
        if request is None or not self._cells.is_ready(request):
            return None
        others = [other for other in self._reservations.in_force() if other.gang != one.gang]
        return self._cells.moves(
            request,
            movable=list(self._movable()),
            most_cost=self._queues.defragmentation.maximum_cost,
            candidate_nodes=self._nodes.freeable(
                gang.node_wishes(), without=dict.fromkeys(gang.refused_nodes)
            ),
            kept=[seat for other in others if other.domain is None for seat in other.kept],
        )

    def _movable(self) -> Iterator[MovableGang]:
        """Yield the opportunistic gangs that are the cheapest to move, with where they may go."""
        wishes: dict[Hashable, Collection[NodeName]] = {}
        for cost, _, gang in nsmallest(_MOST_MOVABLE, self._costs()):
            wish = gang.node_wishes()
            if wish not in wishes:
                wishes[wish] = self._nodes.fitting(wish, without=())
            yield MovableGang(gang=gang.key, cost=cost, nodes=wishes[wish])

    def _costs(self) -> Iterator[tuple[float, GangKey, QueuedGang]]:
        """Yield the gangs that run whole, for long enough, with the work that a move loses."""
        minimum = self._queues.preemption.minimum_run
        for key in self._cells.holders(None)[:_MOST_LOOKED_AT]:
            gang, ran = self._seen.find(key), self._run_times.elapsed(key)
            if gang is None or ran is None or ran < minimum or not self._runs_whole(gang):
                continue
            said = gang.first.request.checkpoint_cost
            lost = ran if said is None else min(float(said), ran)
            yield lost * sum(gang.leaf_counts()), key, gang

    def _runs_whole(self, gang: QueuedGang) -> bool:
        """Tell whether an opportunistic gang runs with all its members, and none ends."""
        is_opportunistic = gang.first.request.priority == OPPORTUNISTIC
        members = gang.pods.values()
        return is_opportunistic and all(
            self._cells.is_bound(pod.uid) and not pod.is_ending for pod in members
        )

    def _perform(self, one: Reservation, gang: QueuedGang, moves: Moves, step: StepResult) -> None:
        """Keep the cells for the gang that become free, and end the gangs that move."""
        grace = self._queues.preemption.grace
        self._next[one.gang] = self._now + grace + _PATIENCE_SECONDS
        # From now on no gang uses the gap: the moved ones would come back, and be moved again.
        deadline = min(one.deadline, self._now)
        after = replace(one, seats=moves.seats, drained=(), nodes=moves.nodes, deadline=deadline)
        self._reservations.put(after, ReservationStep.CLEARED)
        gang.moved = {
            uid: victim for victim in moves.gangs for uid in sorted(self._cells.members_of(victim))
        }
        self._seen.note_change(gang.key)
        step.has_more = True
        step.moves.append(preempt(gang.first.request, victims=moves.gangs, nodes=moves.nodes))
