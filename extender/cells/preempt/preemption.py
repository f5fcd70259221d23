"""Entry point: finds how other gangs make room for a guaranteed gang, and builds the decision.

The ways, in this order: preemptions of the VC at lower priorities are cancelled, which ends no
gang; gangs of the VC that allow it are downgraded, which ends no gang either; victims end.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice

from extender.cells.answers import preempt
from extender.cells.budget import CHEAPEST_VICTIMS, MOST_DOWNGRADED, VICTIM_LOOKS, OutOfBudgetError
from extender.cells.fit.chain_choice import ChainFitter, chains_of
from extender.cells.fit.demand import Ask
from extender.cells.model import Place, Preempt, Seat, Victims, Wait
from extender.cells.preempt import ending_gangs, preemption_case
from extender.cells.preempt.damage import Damage, damage_of
from extender.cells.preempt.eviction_ranking import BinSource, EvictionRankings
from extender.cells.preempt.gangs_by_size import GangsBySize
from extender.cells.preempt.greedy_search import GreedySearch
from extender.cells.preempt.minimum_runs import wait_for_runs
from extender.cells.preempt.preemption_case import Displacement, PreemptionCase
from extender.cells.preempt.victim_candidates import VictimCandidates
from extender.cells.preempt.victims import fewest_gangs, first_solution, least_damage
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang, placement_of
from extender.cells.state.registry import Registry
from policy.placement import Placement
from policy.submission import GangKey, NodeName, VcName

Attempt = Callable[[Ask, PreemptionCase], Place | Preempt | None]


class PreemptionSearch:
    """Finds the least disruptive way to make room; all trials are undone."""

    def __init__(self, table: AllocationTable, registry: Registry, chains: ChainFitter) -> None:
        self._table = table
        self._registry = registry
        self._chains = chains
        self._rankings = EvictionRankings(table)
        self._sizes = GangsBySize(table)
        self.is_suspended = False
        """True while gangs get other priorities: some still have their old ones."""

    def audit(self) -> bool:
        """True if all cached rankings agree with the table."""
        return self._rankings.audit() and self._sizes.audit()

    def is_ready(self, ask: Ask) -> bool:
        """False if a search would first have to rank the bins of whole chains."""
        return all(map(self._rankings.is_ready, self._sources(ask)))

    def prepare_stepwise(self, ask: Ask) -> Generator[None, None, None]:
        """Rank the bins that a search will need, node by node; decisions do not depend on it."""
        for source in self._sources(ask):
            if not self._rankings.is_ready(source):
                yield from self._rankings.build_stepwise(source)
        self._sizes.refresh()

    def _sources(self, ask: Ask) -> dict[BinSource, None]:
        request = ask.request
        if not self._table.is_guaranteed(request) or not self._registry.has_candidates(
            request.vc, request.priority
        ):
            return {}
        cases = self._cases(ask)
        searches = [GreedySearch(self._table, self._rankings, case) for case in cases]
        return {source: None for search in searches for source in search.sources()}

    def may_help(self, ask: Ask) -> bool:
        """False if quick bounds rule out that the end of victims where they are makes room."""
        request = ask.request
        if self.is_suspended or not self._table.is_guaranteed(request):
            return False
        if not self._registry.has_candidates(request.vc, request.priority):
            return False
        cases = self._cases(ask)
        searches = (GreedySearch(self._table, self._rankings, case) for case in cases)
        return not all(search.lacks_bins() for search in searches)

    def may_take_from(self, vc: VcName, priority: int) -> bool:
        """Tell whether gangs of a VC at a lower priority could leave cells to another one."""
        registry = self._registry
        has_lower = registry.highest_below(vc, priority) is not None
        return has_lower or bool(registry.reserving_below(vc, priority))

    def find(self, ask: Ask) -> Place | Preempt | None:
        """Find the least disruptive decision that makes room; None if there is none."""
        request = ask.request
        if self.is_suspended or not self._table.is_guaranteed(request):
            return None
        if not self._registry.has_candidates(request.vc, request.priority):
            return None
        cases, last = list(self._cases(ask)), self._preempt
        gentle = (self._overtake, self._downgrade)
        for attempt in gentle if ask.victims is Victims.NONE else (*gentle, last):
            tried = [
                self._try(attempt, ask, case, is_last=attempt == last and case is cases[-1])
                for case in cases
            ]
            found = [decision for decision in tried if decision is not None]
            if found:
                return min(found, key=self._cost)
        return None

    def wait_for_runs(self, ask: Ask) -> Wait | None:
        """Return the decision to wait if only minimum runs keep a gang from preempting."""
        if self.is_suspended or not self._table.is_guaranteed(ask.request):
            return None
        return wait_for_runs(self._table, self._registry, ask, self.find)

    def _try(
        self, attempt: Attempt, ask: Ask, case: PreemptionCase, *, is_last: bool
    ) -> Place | Preempt | None:
        """Try one way in one case; unless it is the last, it may spend half of the steps left."""
        try:
            with nullcontext() if is_last else ask.budget.half():
                return attempt(ask, case)
        except OutOfBudgetError:
            return None

    def _cases(self, ask: Ask) -> Iterator[PreemptionCase]:
        """One case for each chain, or one for all chains if the gang may span them."""
        chains = chains_of(self._table, ask.request)
        highest = self._registry.highest_below(ask.request.vc, ask.request.priority)
        below = 0 if highest is None else highest + 1
        # Where gangs of the VC may end, it matters which: their cells may be mapped elsewhere.
        takes_any = ask.victims is Victims.ANY and not below
        if ask.request.spans_chains and len(chains) > 1:
            demands = tuple(self._chains.demand(ask, chain) for chain in chains)
            fit = partial(self._chains.fit_in_any, ask)
            yield PreemptionCase(
                demands=demands, fit=fit, request=ask.request, below=below, takes_any=takes_any
            )
            return
        for chain in chains:
            demands = (self._chains.demand(ask, chain),)
            fit = partial(self._chains.fit_in, ask, chain)
            yield PreemptionCase(
                demands=demands, fit=fit, request=ask.request, below=below, takes_any=takes_any
            )

    def _cost(self, decision: Place | Preempt) -> tuple[Damage, int]:
        """The damage of a decision, then the number of gangs, since some of them cost nothing."""
        keys = decision.victims if isinstance(decision, Preempt) else decision.downgraded
        return damage_of([self._table.gangs[key] for key in keys]), len(keys)

    def _overtake(self, ask: Ask, case: PreemptionCase) -> Place | None:
        rivals = preemption_case.overtakable(self._registry, case)
        found = fewest_gangs(rivals, preemption_case.fit_overtaking(self._table, case))
        if found is None:
            return None
        return replace(place(self._table, ask, found.seats), cancelled=keys(found.gangs))

    def _downgrade(self, ask: Ask, case: PreemptionCase) -> Place | None:
        candidates = VictimCandidates(self._table, case, frees_leaves=False)
        lazy = preemption_case.downgradable(self._registry, case)
        is_all = candidates.add(lazy, most=MOST_DOWNGRADED)
        try_fit = preemption_case.fit_downgraded(self._table, case)
        found = least_damage(candidates, try_fit, known=None, budget=ask.budget)
        if found is not None:
            return replace(place(self._table, ask, found.seats), downgraded=keys(found.gangs))
        ask.budget.is_cut |= not is_all
        return None

    def _preempt(self, ask: Ask, case: PreemptionCase) -> Preempt | None:
        """Find victims, first beside all rival preemptions, then with rivals cancelled."""
        found, cancelled = self._victims(case), list[PlacedGang]()
        if found is None:
            cancelled = preemption_case.overtakable(self._registry, case)
            found = self._victims_without(case, cancelled) if cancelled else None
        if found is None:
            return None
        for rival in cancelled:
            fewer = [other for other in cancelled if other is not rival]
            without = self._victims_without(case, fewer)
            if without is not None and damage_of(without.gangs) <= damage_of(found.gangs):
                found, cancelled = without, fewer
        return preempt(
            ask.request,
            victims=keys(found.gangs),
            seats=found.seats,
            nodes=tuple(node_of(self._table, seat) for seat in found.seats),
            cancelled=keys(cancelled),
        )

    def _victims_without(
        self, case: PreemptionCase, rivals: Sequence[PlacedGang]
    ) -> Displacement | None:
        """Victims if the preemptions of some rivals were cancelled."""
        with self._table.what_if():
            for rival in rivals:
                self._table.remove_reserved_slots(rival)
            return self._victims(case)

    def _victims(self, case: PreemptionCase) -> Displacement | None:
        """The victims with the least damage; gangs that are ending already do none."""
        if GreedySearch(self._table, self._rankings, case).is_impossible():
            return None
        if case.takes_any and (found := self._least(case)) is not None:
            return found
        ending = ending_gangs.candidates(self._registry, case)
        if ending:
            search = partial(self._least, case)
            found = ending_gangs.least_beside(self._table, case, ending, search)
            if found is not None:
                return found
        return self._least(case)

    def _least(self, case: PreemptionCase) -> Displacement | None:
        greedy = GreedySearch(self._table, self._rankings, case)
        known = greedy.find()
        if known is not None and case.takes_any:
            return known
        candidates, vc = VictimCandidates(self._table, case), case.vc.name
        is_all = self._registry.has_few_candidates(vc, case.priority, most=VICTIM_LOOKS)
        if is_all:
            candidates.add(preemption_case.endable(self._registry, case))
            candidates.add(self._registry.borrowers())
        else:
            candidates.add(known.gangs if known else ())
            candidates.add(self._likely(case, greedy, candidates))
        try_fit = preemption_case.fit_without(self._table, case)
        if case.takes_any:
            found = first_solution(candidates, try_fit)
        else:
            found = least_damage(candidates, try_fit, known=known, budget=case.budget)
        case.budget.is_cut |= found is None and not is_all
        return found

    def _likely(
        self, case: PreemptionCase, greedy: GreedySearch, candidates: VictimCandidates
    ) -> Iterator[PlacedGang]:
        """Gangs that may do the least damage: in the cheapest bins, or of about the size needed."""
        yield from greedy.cheapest_gangs(CHEAPEST_VICTIMS)
        needed = max(size * candidates.missing(size) for size in candidates.needs)
        for gang in islice(self._sizes.around(needed), CHEAPEST_VICTIMS):
            if gang.may_be_ended_for(case.request) and not gang.is_spared:
                yield gang


def place(table: AllocationTable, ask: Ask, seats: Sequence[Seat]) -> Place:
    """Place the asking member on a seat of its size on a candidate node, the others elsewhere."""
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


def node_of(table: AllocationTable, seat: Seat) -> NodeName:
    """The node of a seat."""
    return _placement_of(table, seat).node


def _placement_of(table: AllocationTable, seat: Seat) -> Placement:
    claim = table.trees[seat.chain].by_address[seat.claim] if seat.claim else None
    return placement_of(table.leaves_of(seat), claim_cell=claim)


def keys(gangs: Sequence[PlacedGang]) -> tuple[GangKey, ...]:
    """The keys of gangs, sorted."""
    return tuple(sorted(gang.key for gang in gangs))
