"""From a request to a decision. The state does not change: every trial is undone.

A member of a known gang takes one of its gang's open slots, or is placed near the other members. An
unknown gang is placed whole, or with as many members as it needs to start: in idle cells if it
fits, otherwise by preemption (`preempt`).
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from extender.cells.answers import listed, needed, preempt, wait
from extender.cells.budget import OutOfBudgetError, budget_for
from extender.cells.decide.kept_seats import keep
from extender.cells.decide.refusals import refusal
from extender.cells.decide.wait_reasons import WaitReasons
from extender.cells.fit.chain_choice import ChainFitter
from extender.cells.fit.demand import Ask, Candidates
from extender.cells.fit.gang_fit import PLACEHOLDER, surroundings
from extender.cells.model import (
    NO_LIMITS,
    NO_MEMBER,
    NONE_KEPT,
    OPPORTUNISTIC,
    Decision,
    KeptCells,
    MemberRequest,
    Part,
    Place,
    Preempt,
    ReasonCode,
    Seat,
    Victims,
    Wait,
)
from extender.cells.preempt.preemption import PreemptionSearch, keys, place
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang, holders, slot_placement
from extender.cells.state.registry import Registry
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Vc
from policy.submission import NodeName
from policy.topology import ChainName

Fit = Callable[[Ask], list[Seat] | None]


class Decider:
    """Decides about requests, given the current state of the table."""

    def __init__(self, table: AllocationTable, registry: Registry) -> None:
        self._table = table
        self._chains = ChainFitter(table)
        self._reasons = WaitReasons(table, self._chains)
        self.preemption = PreemptionSearch(table, registry, self._chains)

    def audit(self) -> bool:
        """Tell whether the indexes of the preemption search agree with the table."""
        return self.preemption.audit()

    def plan(
        self,
        request: MemberRequest,
        candidates: Candidates,
        limits: Mapping[NodeName, int] = NO_LIMITS,
        parts: Sequence[Part] = (),
        kept: Sequence[Seat] = (),
        *,
        victims: Victims = Victims.BEST,
    ) -> Decision:
        """Decide about one member and thereby about its gang; `kept` seats are of other gangs."""
        gang = self._table.gangs.get(request.gang)
        refused = refusal(self._table, request, gang)
        if refused is not None:
            return refused
        if kept:
            with self._table.what_if():
                keep(self._table, self.vc_of(request), kept, asking=request.gang)
                return self.plan(request, candidates, limits, parts, victims=victims)
        ask = self.ask(request, candidates, limits)
        ask = replace(ask, parts=tuple(parts), victims=victims)
        if gang is None:
            return self._plan_gang(ask)
        if gang.is_preempting:
            return self._plan_preempting(ask, gang)
        return self._plan_member(ask, gang)

    def is_ready(self, request: MemberRequest) -> bool:
        """Tell whether `plan` needs no index that takes long to build."""
        if refusal(self._table, request, self._table.gangs.get(request.gang)) is not None:
            return True
        ask = self.ask(request, ())
        return self._lacks_cells(ask) or self.preemption.is_ready(ask)

    def prepare_stepwise(self, request: MemberRequest) -> Generator[None, None, None]:
        """Build the indexes that `plan` needs."""
        if not self.is_ready(request):
            yield from self.preemption.prepare_stepwise(self.ask(request, ()))

    def may_start(self, ask: Ask) -> bool:
        """False if quick bounds rule out that a gang fits, or that victims make room for it."""
        return self._chains.may_fit_in_any(ask) or self.preemption.may_help(ask)

    def most_leaf_cells(self, request: MemberRequest, kept: KeptCells = NONE_KEPT) -> int | None:
        """Return an upper bound of the leaf cells that a gang can get now; None if there is none.

        Opportunistic gangs that run are no obstacle to a guaranteed gang, and no help either: it
        gets at most what its VC does not use. Gangs of its own VC at a lower priority could end.
        """
        is_guaranteed = self._table.is_guaranteed(request)
        if is_guaranteed and self.preemption.may_take_from(request.vc, request.priority):
            return None
        return self._reasons.most_leaf_cells(request, kept)

    def vc_of(self, request: MemberRequest) -> Vc | None:
        """Return the VC whose cells a gang must use, if it is guaranteed."""
        return self._table.vcs[request.vc] if self._table.is_guaranteed(request) else None

    def plan_whole(self, ask: Ask) -> Decision:
        """Decide about a gang that has no places."""
        return self._plan_gang(ask)

    def ask(
        self,
        request: MemberRequest,
        candidates: Candidates,
        limits: Mapping[NodeName, int] = NO_LIMITS,
    ) -> Ask:
        """Return what a decision about a member is about."""
        gang = self._table.gangs.get(request.gang)
        is_whole = gang is None or gang.is_preempting
        return Ask(
            request=request,
            sizes=_descending(request.gang_leaf_counts) if is_whole else (request.leaf_count,),
            candidates=candidates,
            limits=limits,
            budget=budget_for(len(request.gang_leaf_counts)),
        )

    # -- members of known gangs

    def _plan_member(self, ask: Ask, gang: PlacedGang) -> Decision:
        request = ask.request
        own = gang.slot_of(request.member)
        if own is not None:
            return _at(ask, own)
        if gang.is_being_preempted():
            by = listed("preemptors", _preemptors(gang))
            return wait(request, ReasonCode.BEING_PREEMPTED, **by)
        is_member = request.member != NO_MEMBER
        if is_member and (slot := _offered(gang.slots.open(request.leaf_count), ask)):
            return _at(ask, slot)
        if request.member in gang.waiting_members:
            return self._plan_reserved(ask, gang)
        if gang.slots.count(request.leaf_count) >= gang.member_count(request.leaf_count):
            return _members_ending(request, gang) or _gang_full(request)
        return self._plan_late(ask, gang)

    def _plan_late(self, ask: Ask, gang: PlacedGang) -> Decision:
        """Plan a member whose place was given up, or without which an incremental gang started."""
        request = replace(ask.request, ignores_candidates=False, spans_chains=False)
        if not gang.is_guaranteed:
            # A gang that was downgraded may have lost its VC or pinned cell with the topology.
            request = replace(request, priority=OPPORTUNISTIC, pinned=None)
        alone = replace(ask, request=request)
        decision = self._decide(alone, lambda ask: self._fit_near(ask, gang))
        return replace(decision, request=ask.request)

    def _fit_near(self, ask: Ask, gang: PlacedGang) -> list[Seat] | None:
        """Fit as near to the gang's other members as there is room."""
        for nodes in _around(gang):
            offered = {node: None for node in nodes if node in ask.candidates}
            near = replace(ask, candidates=offered)
            seats = self._chains.fit_in_any(near) if offered else None
            if seats is not None:
                return seats
        return self._chains.fit_in_any(ask)

    def _plan_reserved(self, ask: Ask, gang: PlacedGang) -> Decision:
        """Plan a late member whose place is reserved until victims end."""
        slots = gang.reserved_slots(ask.request.leaf_count)
        usable = [slot for slot in slots if not _is_unusable(slot, ask)]
        ready = _offered((slot for slot in usable if not holders([slot])), ask)
        if ready:
            return _at(ask, ready)
        if usable:
            return preempt(ask.request, victims=keys(holders(usable)))
        with self._table.what_if():
            self._table.remove_slot(gang, slots[0])
            decision = self._plan_late(ask, gang)
        return replace(decision, cancels_own=True) if isinstance(decision, Wait) else decision

    def _plan_preempting(self, ask: Ask, gang: PlacedGang) -> Decision:
        if any(_is_unusable(slot, ask) for slot in gang.slots):
            return self._plan_again(ask, gang)
        victims = gang.victims()
        if victims:
            return preempt(ask.request, victims=keys(victims))
        slot = _offered(gang.reserved_slots(ask.request.leaf_count), ask)
        return _at(ask, slot) if slot else _gang_full(ask.request)

    def _plan_again(self, ask: Ask, gang: PlacedGang) -> Decision:
        """Plan a preempting gang again without what it has reserved, which is of no use now."""
        with self._table.what_if():
            self._table.remove_reserved_slots(gang)
            decision = self._plan_gang(ask)
        if isinstance(decision, Place | Preempt):
            return replace(decision, cancelled=(*decision.cancelled, gang.key))
        return replace(decision, cancels_own=True) if isinstance(decision, Wait) else decision

    # -- whole gangs

    def _plan_gang(self, ask: Ask) -> Decision:
        if ask.parts:
            return self._plan_apart(ask)
        least_ask = (
            replace(ask, sizes=_smallest(ask.request, ask.request.gang_min))
            if ask.request.gang_min
            else ask
        )
        too_large = self._reasons.too_large(least_ask)
        if too_large is not None:
            return too_large
        return self._decide(least_ask, lambda least: self._fit_most(ask, least))

    def _plan_apart(self, ask: Ask) -> Decision:
        """Place each part of a gang on its own nodes, if all fit without preemption."""
        seats = self._fit_within_limits(ask, self._chains.fit_apart)
        if seats is not None:
            return place(self._table, ask, seats)
        return _search_ended(ask)

    def _fit_most(self, ask: Ask, least: Ask) -> list[Seat] | None:
        """Fit the whole gang, or as many members of an incremental gang as possible."""
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
        """Return how many members of an incremental gang to try first, by arithmetic alone."""
        low, high = len(least.sizes), len(ask.sizes)
        while low < high:
            middle = (low + high + 1) // 2
            if self._chains.may_fit_in_any(_some(ask, middle)):
                low = middle
            else:
                high = middle - 1
        return low

    def _decide(self, ask: Ask, fit: Fit) -> Decision:
        """Place the gang if it fits, otherwise preempt, otherwise explain why it waits."""
        is_asked = ask.victims is not Victims.NONE
        if self._lacks_cells(ask):
            return self._reasons.find(ask) if is_asked else _search_ended(ask)
        seats = self._fit_within_limits(ask, fit)
        if seats is not None:
            return place(self._table, ask, seats)
        try:
            found = self.preemption.find(ask)
            if found is not None or not is_asked:
                return found or _search_ended(ask)
            return self.preemption.wait_for_runs(ask) or self._reasons.find(ask)
        except OutOfBudgetError:
            return _search_ended(ask)

    def _lacks_cells(self, ask: Ask) -> bool:
        """Tell whether a VC does not have the leaf cells, so that no victim helps."""
        if ask.request.gang_min is not None or not self._table.is_guaranteed(ask.request):
            return False
        most = self.most_leaf_cells(ask.request)
        return most is not None and sum(ask.sizes) > most

    def _fit_within_limits(self, ask: Ask, fit: Fit) -> list[Seat] | None:
        """Fit as if leaf cells beyond the limits of their nodes were in use."""
        if not ask.limits:
            return _within_share(ask, fit)
        with self._table.what_if():
            for name, most in sorted(ask.limits.items()):
                for node in self._table.nodes(name):
                    idle = [leaf for leaf in node.at_level(1) if leaf.idle]
                    if len(idle) > most:
                        self._table.hold(idle[most:], PLACEHOLDER)
            return _within_share(ask, fit)


def _search_ended(ask: Ask) -> Wait:
    return wait(ask.request, ReasonCode.SEARCH_ENDED, **needed(ask.request, ask.sizes))


def _within_share(ask: Ask, fit: Fit) -> list[Seat] | None:
    """Fit within half of the steps that are left: the next attempts need some, too."""
    try:
        with ask.budget.half():
            return fit(ask)
    except OutOfBudgetError:
        return None


def _some(ask: Ask, count: int) -> Ask:
    """Return the same request for fewer members."""
    if count == len(ask.sizes):
        return ask
    return replace(ask, sizes=_smallest(ask.request, count))


def _smallest(request: MemberRequest, count: int) -> tuple[int, ...]:
    """Return the sizes of some members: the asking one and the smallest others, descending."""
    others = sorted(request.gang_leaf_counts)
    others.remove(request.leaf_count)
    return _descending([request.leaf_count, *others[: count - 1]])


def _descending(sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(sizes, reverse=True))


def _around(gang: PlacedGang) -> Iterator[Candidates]:
    """Yield the nodes of a gang, then larger sets of nodes around them."""
    chains: dict[ChainName, list[Cell]] = {}
    for slot in gang.slots:
        if slot.leaves:
            chains.setdefault(slot.leaves[0].chain.name, []).append(slot.leaves[0])
    for cells in chains.values():
        yield from surroundings(cells)


def _preemptors(gang: PlacedGang) -> list[str]:
    """Return the keys of the gangs that preempt a gang, in order."""
    found = {
        leaf.reserver.key
        for slot in gang.slots
        for leaf in slot.leaves
        if leaf.reserver is not None and leaf.reserver is not gang
    }
    return list(map(str, sorted(found)))


def _is_unusable(slot: MemberSlot, ask: Ask) -> bool:
    """Tell whether reserved leaves are bad or no longer offered."""
    if any(leaf.is_bad for leaf in slot.leaves):
        return True
    if ask.request.ignores_candidates:
        return False
    return any(leaf.node not in ask.candidates for leaf in slot.leaves)


def _offered(slots: Iterable[MemberSlot], ask: Ask) -> MemberSlot | None:
    """Return the first slot on a candidate node, or else the first; None if there is none."""
    first: MemberSlot | None = None
    for slot in slots:
        if slot.node in ask.candidates:
            return slot
        first = first or slot
    return first


def _at(ask: Ask, slot: MemberSlot) -> Decision:
    placement = slot_placement(slot)
    if placement.node in ask.candidates:
        return Place(request=ask.request, placement=placement)
    return wait(ask.request, ReasonCode.NODE_NOT_OFFERED, node=placement.node)


def _members_ending(request: MemberRequest, gang: PlacedGang) -> Wait | None:
    """Wait for members of the same size that are terminating; None if there are none."""
    ending = sum(slot.is_ending and slot.size == request.leaf_count for slot in gang.slots)
    return wait(request, ReasonCode.MEMBERS_ENDING, members=ending) if ending else None


def _gang_full(request: MemberRequest) -> Wait:
    count = request.gang_leaf_counts.count(request.leaf_count)
    told = {"members": count, "leaf_cells": request.leaf_count}
    return wait(request, ReasonCode.GANG_FULL, **told)
