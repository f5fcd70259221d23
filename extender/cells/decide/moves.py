"""Moves: opportunistic gangs that could run elsewhere, so that another opportunistic gang fits.

Idle leaf cells may be spread over nodes so that a gang fits on none of them. Inside a what-if some
gangs are removed, the waiting gang is placed, and then each removed gang is placed again beside it.
Only if all of them have places, the moves count. First single gangs are tried, the cheapest first;
then nodes are cleared one after the other. The work is bounded by one budget of steps.

Guaranteed gangs need no moves: they preempt opportunistic gangs within their promise.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from extender.cells.budget import (
    MOST_MOVED,
    MOVE_NODES,
    MOVE_SLOT_STEPS,
    MOVE_STEPS,
    SearchBudget,
)
from extender.cells.decide.decider import Decider
from extender.cells.decide.kept_seats import keep
from extender.cells.decide.refusals import refusal
from extender.cells.fit.demand import Ask, Candidates
from extender.cells.fit.gang_fit import PLACEHOLDER
from extender.cells.model import (
    OPPORTUNISTIC,
    MemberRequest,
    MovableGang,
    Moves,
    Place,
    Seat,
)
from extender.cells.preempt.preemption import node_of
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import Cell
from policy.submission import NodeName


class MoveSearch:
    """Finds moves for a gang that has no places; all trials are undone."""

    def __init__(self, table: AllocationTable, decider: Decider) -> None:
        self._table = table
        self._decider = decider

    def find(
        self,
        request: MemberRequest,
        candidates: Candidates,
        *,
        movable: Sequence[MovableGang],
        most_cost: float,
        kept: Iterable[Seat] = (),
    ) -> Moves | None:
        """Find moves of little cost that make room for an opportunistic gang; None if none do.

        `kept` are the seats of other gangs, which neither it nor moved gangs may take.
        """
        known = self._table.gangs.get(request.gang)
        if known is not None or self._table.is_guaranteed(request):
            return None
        if refusal(self._table, request, known) is not None:
            return None
        ask = replace(self._decider.ask(request, candidates), budget=SearchBudget(MOVE_STEPS))
        affordable = [one for one in movable if one.cost <= most_cost and self._holds(one)]
        affordable.sort(key=lambda one: (one.cost, one.gang))
        with self._table.what_if():
            keep(self._table, None, kept)
            if self._seats(ask):
                return None  # it fits without
            return self._alone(ask, affordable) or self._by_node(ask, affordable, most_cost)

    def _holds(self, one: MovableGang) -> bool:
        """True if a gang holds leaves and every other gang may end it."""
        gang = self._table.gangs.get(one.gang)
        if gang is None or gang.is_foreign or gang.is_ending or not len(gang.slots):
            return False
        return gang.request.priority == OPPORTUNISTIC and not gang.reserved_slots()

    def _alone(self, ask: Ask, movable: Sequence[MovableGang]) -> Moves | None:
        for one in movable:
            if ask.budget.left <= 0:
                return None
            if found := self._try(ask, [one]):
                return found
        return None

    def _by_node(self, ask: Ask, movable: Sequence[MovableGang], most_cost: float) -> Moves | None:
        """Clear the nodes whose gangs cost the least, until the gang fits."""
        nodes = self._nodes_by_cost(movable)
        for start in range(min(len(nodes), MOVE_NODES)):
            chosen: dict[MovableGang, None] = {}
            for gangs in nodes[start:]:
                more = {**chosen, **dict.fromkeys(gangs)}
                if len(more) > MOST_MOVED or sum(one.cost for one in more) > most_cost:
                    continue
                chosen = more
                if ask.budget.left <= 0:
                    return None
                if len(chosen) > 1 and (found := self._try(ask, list(chosen))):
                    return found
        return None

    def _nodes_by_cost(self, movable: Sequence[MovableGang]) -> list[list[MovableGang]]:
        on: dict[NodeName, list[MovableGang]] = {}
        for one in movable:
            slots = self._table.gangs[one.gang].slots
            for node in {slot.node: None for slot in slots}:
                on.setdefault(node, []).append(one)
        ordered = sorted(on.items(), key=lambda item: (sum(g.cost for g in item[1]), item[0]))
        return [gangs for _, gangs in ordered]

    def _try(self, ask: Ask, gangs: Sequence[MovableGang]) -> Moves | None:
        """Move these gangs, or those of them whose leaves are needed; None if that does not do."""
        ask.budget.left -= MOVE_SLOT_STEPS * sum(
            len(self._table.gangs[one.gang].slots) for one in gangs
        )
        with self._table.what_if():
            leaves = {one: self._leaves(one) for one in gangs}
            asks = {one: self._ask_again(one, ask) for one in gangs}
            for one in gangs:
                self._table.remove_held_slots(self._table.gangs[one.gang])
            seats = self._seats(ask)
            taken = {leaf for seat in seats for leaf in self._table.leaves_of(seat)}
            needed = [one for one in gangs if not taken.isdisjoint(leaves[one])]
            if seats and len(needed) == len(gangs) and self._fit_again(seats, asks.values()):
                nodes = tuple(node_of(self._table, seat) for seat in seats)
                keys = tuple(sorted(one.gang for one in gangs))
                cost = sum(one.cost for one in gangs)
                return Moves(gangs=keys, cost=cost, seats=seats, nodes=nodes)
        return self._try(ask, needed) if seats and 0 < len(needed) < len(gangs) else None

    def _leaves(self, one: MovableGang) -> set[Cell]:
        slots = self._table.gangs[one.gang].slots
        return {leaf for slot in slots for leaf in slot.leaves}

    def _ask_again(self, one: MovableGang, ask: Ask) -> Ask:
        """Ask for what a gang holds, on the nodes that it may use."""
        gang = self._table.gangs[one.gang]
        sizes = tuple(sorted((slot.size for slot in gang.slots), reverse=True))
        request = replace(gang.request, leaf_count=sizes[0], gang_leaf_counts=sizes, gang_min=None)
        again = self._decider.ask(request, one.nodes)
        return replace(again, sizes=sizes, budget=ask.budget)

    def _fit_again(self, seats: Sequence[Seat], asks: Iterable[Ask]) -> bool:
        """Tell whether moved gangs fit beside the seats, the largest first."""
        self._hold(seats)
        for ask in sorted(asks, key=lambda ask: (-sum(ask.sizes), ask.request.gang)):
            found = self._seats(ask)
            if not found:
                return False
            self._hold(found)
        return True

    def _hold(self, seats: Sequence[Seat]) -> None:
        for seat in seats:
            self._table.hold(self._table.leaves_of(seat), PLACEHOLDER)

    def _seats(self, ask: Ask) -> tuple[Seat, ...]:
        """Return the seats that a gang gets now; none if it does not fit."""
        if ask.budget.left <= 0 or not self._decider.may_start(ask):
            return ()
        ask.budget.left -= len(ask.sizes)
        decision = self._decider.plan_whole(ask)
        return decision.seats if isinstance(decision, Place) else ()
