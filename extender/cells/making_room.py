"""How others make room for a guaranteed gang, and what that makes of the decision.

In this order: preemptions at lower priorities are overtaken, which ends nobody; lazy gangs of the
VC are downgraded, which ends nobody either; victims end.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from extender.cells import preemption, wording
from extender.cells.admission import chains_of
from extender.cells.chains import Chains
from extender.cells.demand import Ask
from extender.cells.gangs import Gang
from extender.cells.limits import MOST_VICTIM_LOOKS, VICTIM_LOOKS
from extender.cells.model import Place, Placement, Preempt, Seat
from extender.cells.outlook import Damage, Outlook, damage
from extender.cells.placing import placement_of
from extender.cells.preemption import Case, Found
from extender.cells.registry import Registry
from extender.cells.table import Table
from extender.cells.victims import fewest, least
from policy.submission import GangKey
from policy.topology import ChainName

Attempt = Callable[[Ask, Case], Place | Preempt | None]


class RoomMaker:
    """Makes room on the present state of the table; what is tried is undone."""

    def __init__(self, table: Table, registry: Registry, chains: Chains) -> None:
        self._table = table
        self._registry = registry
        self._chains = chains

    def make(self, ask: Ask) -> Place | Preempt | None:
        """Find the least that others have to do; None if nothing helps."""
        request = ask.request
        if not self._chains.is_guaranteed(request):
            return None
        if not self._registry.has_candidates(request.vc, request.priority):
            return None
        attempts: tuple[Attempt, ...] = (self._overtake, self._downgrade, self._preempt)
        cases = list(self._cases(ask))
        for attempt in attempts:
            tried = [attempt(ask, case) for case in cases]
            found = [decision for decision in tried if decision is not None]
            if found:
                return min(found, key=self._cost)
        return None

    def _cases(self, ask: Ask) -> Iterator[Case]:
        """Each chain alone, or all together where the gang may lie so."""
        chains, priority = chains_of(self._table, ask.request), ask.request.priority
        if ask.request.spans_chains and len(chains) > 1:
            demands = tuple(self._chains.demand(ask, chain) for chain in chains)
            fit = self._chains.fit_in_any
            yield Case(demands=demands, fit=lambda: fit(ask), priority=priority)
            return
        for chain in chains:
            demand = self._chains.demand(ask, chain)
            yield Case(demands=(demand,), fit=self._fitter(ask, chain), priority=priority)

    def _fitter(self, ask: Ask, chain: ChainName) -> Callable[[], list[Seat] | None]:
        return lambda: self._chains.fit_in(ask, chain)

    def _cost(self, decision: Place | Preempt) -> Damage:
        """What a decision does to others."""
        keys = decision.victims if isinstance(decision, Preempt) else decision.downgraded
        return damage([self._table.gangs[key] for key in keys])

    def _overtake(self, ask: Ask, case: Case) -> Place | None:
        rivals = preemption.overtaken(self._registry, case)
        found = fewest(rivals, preemption.fit_overtaking(self._table, case))
        if found is None:
            return None
        return replace(place(self._table, ask, found.seats), cancelled=keys(found.gangs))

    def _downgrade(self, ask: Ask, case: Case) -> Place | None:
        works = preemption.fit_downgraded(self._table, case)
        for most in (VICTIM_LOOKS, MOST_VICTIM_LOOKS):
            outlook = Outlook(self._table, case, leaves_go=False)
            is_all = outlook.take(preemption.downgradable(self._registry, case), most=most)
            found = least(outlook, works)
            if found is not None:
                return replace(place(self._table, ask, found.seats), downgraded=keys(found.gangs))
            if is_all:
                return None
        ask.budget.is_cut = True
        return None

    def _preempt(self, ask: Ask, case: Case) -> Preempt | None:
        """Victims, first with all rivals in place, then with them overtaken."""
        rivals = preemption.overtaken(self._registry, case)
        for cancelled in ([], rivals) if rivals else ([],):
            with self._table.what_if():
                for rival in cancelled:
                    self._table.withdraw(rival)
                found = self._victims(case)
            if found is not None:
                return wording.preempting(
                    ask.request,
                    victims=keys(found.gangs),
                    seats=found.seats,
                    cancelled=keys(cancelled),
                )
        return None

    def _victims(self, case: Case) -> Found | None:
        works = preemption.fit_without(self._table, case)
        for most in (VICTIM_LOOKS, MOST_VICTIM_LOOKS):
            outlook = Outlook(self._table, case)
            own = outlook.take(preemption.endable(self._registry, case), most=most)
            others = outlook.take(self._registry.opportunistic(), most=most)
            found = least(outlook, works)
            if found is not None or (own and others):
                return found
        case.budget.is_cut = True
        return None


def place(table: Table, ask: Ask, seats: Sequence[Seat]) -> Place:
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


def _placement_of(table: Table, seat: Seat) -> Placement:
    tree = table.trees[seat.chain]
    leaves = tuple(tree.by_address[address] for address in seat.leaves)
    claim = tree.by_address[seat.claim] if seat.claim else None
    return placement_of(leaves, claim_cell=claim)


def keys(gangs: Sequence[Gang]) -> tuple[GangKey, ...]:
    """The keys of gangs, sorted."""
    return tuple(sorted(gang.key for gang in gangs))
