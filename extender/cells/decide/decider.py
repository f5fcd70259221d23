"""From a request to a decision. Changes nothing: what is tried is undone.

A member of a gang that is known takes one of its gang's open slots, or is placed near the others.
An unknown gang is placed whole, or as much of it as is enough to start: where it fits as things
are, else where others make room (`making_room`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from extender.cells.budget import OutOfBudgetError, budget_for
from extender.cells.decide import wording
from extender.cells.decide.reasons import Reasons
from extender.cells.decide.refusals import refusal
from extender.cells.fit.chain_choice import ChainFitter
from extender.cells.fit.demand import Ask, Candidates
from extender.cells.fit.gang_fit import surroundings
from extender.cells.model import (
    OPPORTUNISTIC,
    Decision,
    MemberRequest,
    Place,
    Preempt,
    Seat,
    Wait,
)
from extender.cells.preempt.preemption import PreemptionSearch, keys, place
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang, holders
from extender.cells.state.placements import slot_placement
from extender.cells.state.registry import Registry
from extender.cells.state.tree import Cell
from policy.submission import GangKey
from policy.topology import ChainName

Fit = Callable[[Ask], list[Seat] | None]


class Planner:
    """Decides on the present state of the table."""

    def __init__(self, table: AllocationTable, registry: Registry) -> None:
        self._table = table
        self._chains = ChainFitter(table)
        self._reasons = Reasons(table, self._chains)
        self._preemption = PreemptionSearch(table, registry, self._chains)

    def audit(self) -> bool:
        """True if what it remembers agrees with the table."""
        return self._preemption.audit()

    def plan(self, request: MemberRequest, candidates: Candidates) -> Decision:
        """Decide about one member, and with it about its gang."""
        gang = self._table.gangs.get(request.gang)
        refused = refusal(self._table, request, gang)
        if refused is not None:
            return refused
        is_whole = gang is None or gang.is_preempting
        ask = Ask(
            request=request,
            sizes=_descending(request.gang_leaf_counts) if is_whole else (request.leaf_count,),
            candidates=candidates,
            budget=budget_for(len(request.gang_leaf_counts)),
        )
        if gang is None:
            return self._plan_gang(ask)
        if gang.is_preempting:
            return self._plan_preempting(ask, gang)
        return self._plan_member(ask, gang)

    # -- members of known gangs

    def _plan_member(self, ask: Ask, gang: PlacedGang) -> Decision:
        request = ask.request
        own = gang.slot_of(request.member)
        if own is not None:
            return _at(ask, own)
        if gang.is_being_preempted():
            return wording.being_preempted(request, preemptors(gang))
        slots = gang.open_slots(request.leaf_count)
        if slots:
            return _at(ask, _offered(slots, ask))
        if request.member in gang.waiting_members:
            return self._plan_reserved(ask, gang)
        taken = sum(slot.size == request.leaf_count for slot in gang.slots)
        if taken >= gang.request.gang_leaf_counts.count(request.leaf_count):
            return wording.gang_full(request)
        return self._plan_late(ask, gang)

    def _plan_late(self, ask: Ask, gang: PlacedGang) -> Decision:
        """A member whose place was given up, or that an incremental gang started without."""
        request = replace(ask.request, ignores_candidates=False, spans_chains=False)
        if not gang.is_guaranteed:
            # A gang that was downgraded may have lost its VC or pinned cell with the topology.
            request = replace(request, priority=OPPORTUNISTIC, pinned=None)
        alone = replace(ask, request=request)
        decision = self._decide(alone, lambda ask: self._fit_near(ask, gang))
        return replace(decision, request=ask.request)

    def _fit_near(self, ask: Ask, gang: PlacedGang) -> list[Seat] | None:
        """With the lowest common ancestor with the gang's other members, if there is room."""
        for nodes in _around(gang):
            offered = {node: None for node in nodes if node in ask.candidates}
            near = replace(ask, candidates=offered)
            seats = self._chains.fit_in_any(near) if offered else None
            if seats is not None:
                return seats
        return self._chains.fit_in_any(ask)

    def _plan_reserved(self, ask: Ask, gang: PlacedGang) -> Decision:
        """A late member for which others have to end."""
        slots = gang.reserved_slots(ask.request.leaf_count)
        usable = [slot for slot in slots if not _is_spoilt(slot, ask)]
        ready = [slot for slot in usable if not holders([slot])]
        if ready:
            return _at(ask, _offered(ready, ask))
        if usable:
            return wording.preempting(ask.request, victims=keys(holders(usable)))
        with self._table.what_if():
            self._table.unseat(gang, slots[0])
            decision = self._plan_late(ask, gang)
        return replace(decision, cancels_own=True) if isinstance(decision, Wait) else decision

    def _plan_preempting(self, ask: Ask, gang: PlacedGang) -> Decision:
        if any(_is_spoilt(slot, ask) for slot in gang.slots):
            return self._plan_anew(ask, gang)
        victims = gang.victims()
        if victims:
            return wording.preempting(ask.request, victims=keys(victims))
        slots = gang.reserved_slots(ask.request.leaf_count)
        return _at(ask, _offered(slots, ask)) if slots else wording.gang_full(ask.request)

    def _plan_anew(self, ask: Ask, gang: PlacedGang) -> Decision:
        with self._table.what_if():
            self._table.release(gang)
            decision = self._plan_gang(ask)
        if isinstance(decision, Place | Preempt):
            return replace(decision, cancelled=(*decision.cancelled, gang.key))
        return replace(decision, cancels_own=True) if isinstance(decision, Wait) else decision

    # -- whole gangs

    def _plan_gang(self, ask: Ask) -> Decision:
        least_ask = (
            replace(ask, sizes=_smallest(ask.request, ask.request.gang_min))
            if ask.request.gang_min
            else ask
        )
        too_large = self._reasons.too_large(least_ask)
        if too_large is not None:
            return too_large
        return self._decide(least_ask, lambda least: self._fit_most(ask, least))

    def _fit_most(self, ask: Ask, least: Ask) -> list[Seat] | None:
        """The whole gang, else as many members of an incremental one as fit."""
        if len(least.sizes) == len(ask.sizes):
            return self._chains.fit_in_any(least)
        fit = self._chains.fit_in_any
        low, high = len(least.sizes), self._most_that_may_fit(ask, least)
        best = _within_share(_some(ask, high), fit)
        if best is None and high > low:
            best, high = _within_share(least, fit), high - 1
        while best is not None and len(best) < high:
            middle = (len(best) + 1 + high) // 2
            found = _within_share(_some(ask, middle), fit)
            best, high = (found, high) if found is not None else (best, middle - 1)
        return best

    def _most_that_may_fit(self, ask: Ask, least: Ask) -> int:
        """How many members of an incremental gang to try first, by arithmetic alone."""
        low, high = len(least.sizes), len(ask.sizes)
        while low < high:
            middle = (low + high + 1) // 2
            if self._chains.may_fit_in_any(_some(ask, middle)):
                low = middle
            else:
                high = middle - 1
        return low

    def _decide(self, ask: Ask, fit: Fit) -> Decision:
        """Place what fits, else make room for what was asked for, else say why not."""
        seats = _within_share(ask, fit)
        if seats is not None:
            return place(self._table, ask, seats)
        try:
            return self._preemption.find(ask) or self._reasons.why_not(ask)
        except OutOfBudgetError:
            return wording.search_ended(ask.request, ask.sizes)


def _within_share(ask: Ask, fit: Fit) -> list[Seat] | None:
    """Fit within half of the steps that are left: what else can be tried needs some, too."""
    try:
        with ask.budget.half():
            return fit(ask)
    except OutOfBudgetError:
        return None


def _some(ask: Ask, count: int) -> Ask:
    """The same for so many members only."""
    if count == len(ask.sizes):
        return ask
    return replace(ask, sizes=_smallest(ask.request, count))


def _smallest(request: MemberRequest, count: int) -> tuple[int, ...]:
    """So many members of a gang: the one that asks and the smallest others, descending."""
    others = sorted(request.gang_leaf_counts)
    others.remove(request.leaf_count)
    return _descending([request.leaf_count, *others[: count - 1]])


def _descending(sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(sizes, reverse=True))


def _around(gang: PlacedGang) -> Iterator[Candidates]:
    """The nodes of a gang, then those around them."""
    chains: dict[ChainName, list[Cell]] = {}
    for slot in gang.slots:
        if slot.leaves:
            chains.setdefault(slot.leaves[0].chain.name, []).append(slot.leaves[0])
    for cells in chains.values():
        yield from surroundings(cells)


def preemptors(gang: PlacedGang) -> list[GangKey]:
    """Who preempts a gang, by key."""
    found = {
        leaf.reserver.key
        for slot in gang.slots
        for leaf in slot.leaves
        if leaf.reserver is not None and leaf.reserver is not gang
    }
    return sorted(found)


def _is_spoilt(slot: MemberSlot, ask: Ask) -> bool:
    """True if what is reserved is of no use any more."""
    if any(leaf.is_bad for leaf in slot.leaves):
        return True
    if ask.request.ignores_candidates:
        return False
    return any(leaf.node not in ask.candidates for leaf in slot.leaves)


def _offered(slots: Sequence[MemberSlot], ask: Ask) -> MemberSlot:
    offered = (slot for slot in slots if slot_placement(slot).node in ask.candidates)
    return next(offered, slots[0])


def _at(ask: Ask, slot: MemberSlot) -> Decision:
    placement = slot_placement(slot)
    if placement.node in ask.candidates:
        return Place(request=ask.request, placement=placement)
    return wording.not_offered(ask.request, placement.node)
