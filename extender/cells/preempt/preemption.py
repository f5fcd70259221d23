"""How others make room for a guaranteed gang, and what that makes of the decision.

In this order: preemptions at lower priorities are overtaken, which ends nobody; lazy gangs of the
VC are downgraded, which ends nobody either; victims end.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice

from extender.cells.budget import CHEAPEST_VICTIMS, MOST_DOWNGRADED, VICTIM_LOOKS, OutOfBudgetError
from extender.cells.decide import wording
from extender.cells.decide.refusals import chains_of
from extender.cells.fit.chain_choice import ChainFitter
from extender.cells.fit.demand import Ask
from extender.cells.model import Place, Placement, Preempt, Seat
from extender.cells.preempt import ending_gangs
from extender.cells.preempt import preemption_case as preemption
from extender.cells.preempt.damage import Damage, damage
from extender.cells.preempt.eviction_ranking import EvictionRankings
from extender.cells.preempt.gangs_by_size import GangsBySize
from extender.cells.preempt.greedy_search import GreedySearch
from extender.cells.preempt.preemption_case import Displacement, PreemptionCase
from extender.cells.preempt.victim_candidates import VictimCandidates
from extender.cells.preempt.victims import fewest_gangs, least_damage
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.state.placements import placement_of
from extender.cells.state.registry import Registry
from policy.submission import GangKey
from policy.topology import ChainName

Attempt = Callable[[Ask, PreemptionCase], Place | Preempt | None]


class PreemptionSearch:
    """Makes room on the present state of the table; what is tried is undone."""

    def __init__(self, table: AllocationTable, registry: Registry, chains: ChainFitter) -> None:
        self._table = table
        self._registry = registry
        self._chains = chains
        self._clearances = EvictionRankings(table)
        self._sizes = GangsBySize(table)

    def audit(self) -> bool:
        """True if what is remembered of gangs and bins agrees with the table."""
        return self._clearances.audit() and self._sizes.audit()

    def find(self, ask: Ask) -> Place | Preempt | None:
        """Find the least that others have to do; None if nothing helps."""
        request = ask.request
        if not self._chains.is_guaranteed(request):
            return None
        if not self._registry.has_candidates(request.vc, request.priority):
            return None
        cases, last = list(self._cases(ask)), self._preempt
        for attempt in (self._overtake, self._downgrade, last):
            tried = [
                self._try(attempt, ask, case, is_last=attempt == last and case is cases[-1])
                for case in cases
            ]
            found = [decision for decision in tried if decision is not None]
            if found:
                return min(found, key=self._cost)
        return None

    def _try(
        self, attempt: Attempt, ask: Ask, case: PreemptionCase, *, is_last: bool
    ) -> Place | Preempt | None:
        """Try one way in one chain; if it is not the last, others need steps, too."""
        try:
            with nullcontext() if is_last else ask.budget.half():
                return attempt(ask, case)
        except OutOfBudgetError:
            return None

    def _cases(self, ask: Ask) -> Iterator[PreemptionCase]:
        """Each chain alone, or all together where the gang may lie so."""
        chains = chains_of(self._table, ask.request)
        highest = self._registry.highest_below(ask.request.vc, ask.request.priority)
        below = 0 if highest is None else highest + 1
        if ask.request.spans_chains and len(chains) > 1:
            demands = tuple(self._chains.demand(ask, chain) for chain in chains)
            fit = self._chains.fit_in_any
            yield PreemptionCase(
                demands=demands, fit=lambda: fit(ask), request=ask.request, below=below
            )
            return
        for chain in chains:
            demand = self._chains.demand(ask, chain)
            yield PreemptionCase(
                demands=(demand,), fit=self._fitter(ask, chain), request=ask.request, below=below
            )

    def _fitter(self, ask: Ask, chain: ChainName) -> Callable[[], list[Seat] | None]:
        return lambda: self._chains.fit_in(ask, chain)

    def _cost(self, decision: Place | Preempt) -> tuple[Damage, int]:
        """What a decision does to others, then how many it waits for: some may cost nothing."""
        keys = decision.victims if isinstance(decision, Preempt) else decision.downgraded
        return damage([self._table.gangs[key] for key in keys]), len(keys)

    def _overtake(self, ask: Ask, case: PreemptionCase) -> Place | None:
        rivals = preemption.overtaken(self._registry, case)
        found = fewest_gangs(rivals, preemption.fit_overtaking(self._table, case))
        if found is None:
            return None
        return replace(place(self._table, ask, found.seats), cancelled=keys(found.gangs))

    def _downgrade(self, ask: Ask, case: PreemptionCase) -> Place | None:
        outlook = VictimCandidates(self._table, case, leaves_go=False)
        lazy = preemption.downgradable(self._registry, case)
        is_all = outlook.take(lazy, most=MOST_DOWNGRADED)
        works = preemption.fit_downgraded(self._table, case)
        found = least_damage(outlook, works, known=None, budget=ask.budget)
        if found is not None:
            return replace(place(self._table, ask, found.seats), downgraded=keys(found.gangs))
        ask.budget.is_cut |= not is_all
        return None

    def _preempt(self, ask: Ask, case: PreemptionCase) -> Preempt | None:
        """Victims, first with all rivals in place, then with them overtaken."""
        found, cancelled = self._victims(case), list[PlacedGang]()
        if found is None:
            cancelled = preemption.overtaken(self._registry, case)
            found = self._victims_without(case, cancelled) if cancelled else None
        if found is None:
            return None
        for rival in cancelled:
            fewer = [other for other in cancelled if other is not rival]
            without = self._victims_without(case, fewer)
            if without is not None and damage(without.gangs) <= damage(found.gangs):
                found, cancelled = without, fewer
        return wording.preempting(
            ask.request,
            victims=keys(found.gangs),
            seats=found.seats,
            cancelled=keys(cancelled),
        )

    def _victims_without(
        self, case: PreemptionCase, rivals: Sequence[PlacedGang]
    ) -> Displacement | None:
        """Victims if some rivals did not preempt."""
        with self._table.what_if():
            for rival in rivals:
                self._table.withdraw(rival)
            return self._victims(case)

    def _victims(self, case: PreemptionCase) -> Displacement | None:
        """The least harmful victims; who is ending already is no harm."""
        if GreedySearch(self._table, self._clearances, case).is_hopeless():
            return None
        leaving = ending_gangs.candidates(self._registry, case)
        if leaving:
            found = ending_gangs.least_beside(self._table, case, leaving, lambda: self._least(case))
            if found is not None:
                return found
        return self._least(case)

    def _least(self, case: PreemptionCase) -> Displacement | None:
        carver = GreedySearch(self._table, self._clearances, case)
        carved = carver.find()
        outlook, vc = VictimCandidates(self._table, case), case.vc.name
        is_all = self._registry.has_few_candidates(vc, case.priority, most=VICTIM_LOOKS)
        if is_all:
            outlook.take(preemption.endable(self._registry, case))
            outlook.take(self._registry.opportunistic())
        else:
            outlook.take(carved.gangs if carved else ())
            outlook.take(self._likely(case, carver, outlook))
        works = preemption.fit_without(self._table, case)
        found = least_damage(outlook, works, known=carved, budget=case.budget)
        case.budget.is_cut |= found is None and not is_all
        return found

    def _likely(
        self, case: PreemptionCase, carver: GreedySearch, outlook: VictimCandidates
    ) -> Iterator[PlacedGang]:
        """Candidates for the least damage: in the cheapest bins, or of about the size needed."""
        yield from carver.cheapest(CHEAPEST_VICTIMS)
        needed = max(size * outlook.missing(size) for size in outlook.needs)
        for gang in islice(self._sizes.around(needed), CHEAPEST_VICTIMS):
            if gang.may_be_ended_for(case.request):
                yield gang


def place(table: AllocationTable, ask: Ask, seats: Sequence[Seat]) -> Place:
    """The member that asks gets a seat of its size on a node that it was offered."""
    placed = [(seat, _placement_of(table, seat)) for seat in seats]
    first = next(
        index
        for index, (seat, placement) in enumerate(placed)
        if len(seat.leaves) == ask.request.leaf_count and placement.node in ask.candidates
    )
    placed.insert(0, placed.pop(first))
    return Place(
        request=ask.request,
        placement=placed[0][1],
        others=tuple(placement for _, placement in placed[1:]),
        seats=tuple(seat for seat, _ in placed),
    )


def _placement_of(table: AllocationTable, seat: Seat) -> Placement:
    tree = table.trees[seat.chain]
    leaves = tuple(tree.by_address[address] for address in seat.leaves)
    claim = tree.by_address[seat.claim] if seat.claim else None
    return placement_of(leaves, claim_cell=claim)


def keys(gangs: Sequence[PlacedGang]) -> tuple[GangKey, ...]:
    """The keys of gangs, sorted."""
    return tuple(sorted(gang.key for gang in gangs))
