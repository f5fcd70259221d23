"""What ending gangs could bring at most, by arithmetic: most sets of victims need not be tried.

A gang needs so many bins of its size. How many there could be at most is counted twice: by what
would be idle on the nodes, and by what its VC would have. A set of candidates that does not bring
enough either way is never tried; and what each node would cost to clear is known without trying.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from extender.cells.fit.bin_choice import members_at_least
from extender.cells.fit.demand import Demand
from extender.cells.fit.guaranteed_fit import idle_cell_capacity
from extender.cells.preempt.damage import Damage, damage, total
from extender.cells.preempt.preemption_case import PreemptionCase
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang
from extender.cells.state.ranking import Ranking
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Claim
from policy.submission import GangKey


@dataclass(slots=True, eq=False)
class CandidateBin:
    """A node, or a preassigned cell below node level, where candidates are."""

    cell: Cell
    claim: Claim | None
    """The preassigned cell of the gang's VC that it is in."""
    demand: Demand
    inside: dict[PlacedGang, int] = field(default_factory=dict)
    """Leaves that would be idle without each candidate."""

    @property
    def is_useful(self) -> bool:
        """True if the gang could be here: in its VC's cells, or where one could be mapped."""
        demand = self.demand
        if not demand.allowed(self.cell) or demand.vc is None:
            return False
        return self.claim is not None or bool(demand.vc.unused_levels(demand.chain))


class VictimCandidates:
    """Candidates for victims, and what they could bring.

    Gangs that are only downgraded stay where they are: they leave their VC's cells, but no leaves.
    """

    def __init__(
        self, table: AllocationTable, case: PreemptionCase, *, leaves_go: bool = True
    ) -> None:
        self._table = table
        self.leaves_go = leaves_go
        self._demands = {demand.chain: demand for demand in case.demands}
        self.bins: dict[Cell, CandidateBin] = {}
        self._harm: dict[PlacedGang, Damage] = {}
        self._of: dict[PlacedGang, list[CandidateBin]] = {}
        self.needs = members_at_least(case.demands[0].sizes)
        """How many members are as large as a size, or larger; the largest size first."""
        self._base = {size: self._at_present(size) for size in self.needs}

    def take(self, candidates: Iterable[PlacedGang], *, most: int | None = None) -> bool:
        """Look at candidates, each once, at so many; False if there are more."""
        looked = iter(candidates)
        for gang in islice(looked, most):
            if gang not in self._of:
                self._take_in(gang)
        return next(looked, None) is None

    @property
    def gangs(self) -> list[PlacedGang]:
        """The candidates that could bring anything."""
        return list(self._of)

    def damage(self, gangs: Sequence[PlacedGang]) -> Damage:
        """What ending gangs costs, also one that is in cells it does not claim: bound by hand."""
        return total([self._harm.get(gang) or damage([gang]) for gang in gangs])

    def bins_of(self, gang: PlacedGang) -> Sequence[CandidateBin]:
        """Where a candidate is."""
        return self._of[gang]

    def users(self, bin_: CandidateBin) -> list[PlacedGang]:
        """Candidates that use the preassigned cell of a bin; none if others do, too."""
        keys = bin_.claim.users if bin_.claim is not None else {}
        users = [self._table.gangs[key] for key in sorted(keys)]
        return users if all(gang in self._of for gang in users) else []

    def _take_in(self, gang: PlacedGang) -> None:
        for slot in gang.slots:
            if not slot.leaves or slot.is_reserved:
                continue
            demand = self._demands.get(slot.leaves[0].chain.name)
            if demand is not None:
                for cell, claim, freed in self._places(slot, demand):
                    self._put(gang, cell, claim, demand, freed)

    def _put(
        self, gang: PlacedGang, cell: Cell, claim: Claim | None, demand: Demand, freed: int
    ) -> None:
        bin_ = self.bins.get(cell)
        if bin_ is None:
            bin_ = self.bins[cell] = CandidateBin(cell, claim, demand)
        if gang not in bin_.inside:
            self._of.setdefault(gang, []).append(bin_)
            self._harm[gang] = damage([gang])
        bin_.inside[gang] = bin_.inside.get(gang, 0) + freed

    def _places(self, slot: MemberSlot, demand: Demand) -> Iterator[tuple[Cell, Claim | None, int]]:
        """Bins of a slot where the VC's cells are or could be mapped, with the leaves there."""
        node = slot.leaves[0].ancestor(slot.leaves[0].chain.node_level)
        if node.claims_below == 0 or slot.claim is not None:
            yield from self._place(slot.leaves, node, slot.claim or node.enclosing_claim(), demand)
            return
        for leaf in slot.leaves:
            yield from self._place([leaf], node, leaf.enclosing_claim(), demand)

    def _place(
        self, leaves: Sequence[Cell], node: Cell, claim: Claim | None, demand: Demand
    ) -> Iterator[tuple[Cell, Claim | None, int]]:
        freed = sum(leaf.reserver is None and not leaf.is_bad for leaf in leaves)
        if claim is None:
            if demand.pinned is None and freed:
                yield node, None, freed
        elif (
            demand.vc is not None
            and claim.vc == demand.vc.name
            and claim.virtual.pinned == demand.pinned
        ):
            # Also without leaves that help: where they are bad, the cell may be mapped elsewhere.
            yield (claim.cell if claim.cell.level < node.level else node), claim, freed

    def _ranking(self, demand: Demand) -> Ranking:
        assert demand.vc is not None
        if demand.pinned is not None:
            return demand.vc.pinned_rankings[demand.pinned]
        return demand.vc.rankings[demand.chain]

    def _at_present(self, size: int) -> tuple[int, int]:
        """Members of a size for which nodes are idle, and for which the VC has cells."""
        idle = promised = 0
        for chain, demand in self._demands.items():
            assert demand.vc is not None
            tree = self._table.trees[chain]
            idle += self._table.idle[chain].capacity(tree.root, size)
            promised += self._ranking(demand).capacity(tree.root, size)
            for level in demand.vc.unused_levels(chain) if demand.pinned is None else ():
                promised += demand.vc.unused(chain, level) * idle_cell_capacity(tree, level, size)
        return idle, promised

    def may_spare(self, gangs: Sequence[PlacedGang]) -> Callable[[PlacedGang], bool]:
        """For a set of gangs: False for one without which too few leaves would be idle; quick."""
        nodes = _by_node(self._freed(gangs))
        left = {
            size: self._base[size][0] + _gain(nodes, size) - count
            for size, count in self.needs.items()
        }

        def may_do(gang: PlacedGang) -> bool:
            less = _by_node({bin_: bin_.inside[gang] for bin_ in self._of.get(gang, ())})
            for size, spare in left.items():
                lost = sum(
                    (node.idle + nodes[node]) // size - (node.idle + nodes[node] - count) // size
                    for node, count in less.items()
                )
                if lost > spare:
                    return False
            return True

        return may_do if self.leaves_go else lambda _: True

    def may_work(self, gangs: Sequence[PlacedGang]) -> bool:
        """False if the gang cannot fit even without these gangs."""
        freed, gone = self._freed(gangs), {gang.key for gang in gangs}
        return all(self._may_hold(size, freed, gone) for size in self.needs)

    def may_hold(self, size: int, gangs: Sequence[PlacedGang]) -> bool:
        """False if there are too few bins of a size even without these gangs."""
        return self._may_hold(size, self._freed(gangs), {gang.key for gang in gangs})

    def _freed(self, gangs: Sequence[PlacedGang]) -> dict[CandidateBin, int]:
        freed: dict[CandidateBin, int] = {}
        for gang in gangs:
            for bin_ in self._of.get(gang, ()):
                freed[bin_] = freed.get(bin_, 0) + bin_.inside[gang]
        return freed

    def missing(self, size: int) -> int:
        """Bins of a size that are missing as things are."""
        return max(0, self.needs[size] - min(self._base[size]))

    def most_gained(self, gang: PlacedGang, size: int) -> int:
        """Bins of a size that the end of one candidate could bring at most."""
        gained = dict[Cell, int]()
        for bin_ in self._of[gang]:
            claim = bin_.claim
            if claim is not None and claim.virtual.pinned is None:
                tree = self._table.trees[claim.virtual.chain]
                gained[claim.cell] = idle_cell_capacity(tree, claim.virtual.level, size)
            else:
                gained[bin_.cell] = -(-bin_.inside[gang] // size)
        return sum(gained.values())

    def _may_hold(self, size: int, freed: dict[CandidateBin, int], gone: set[GangKey]) -> bool:
        count = self.needs[size]
        idle, promised = self._base[size]
        gain = _gain(_by_node(freed), size) if self.leaves_go else 0
        return idle + gain >= count and promised + self._promised_gain(freed, size, gone) >= count

    def _promised_gain(self, freed: dict[CandidateBin, int], size: int, gone: set[GangKey]) -> int:
        """More members that the VC's cells could hold."""
        gain, seen = 0, dict[Claim, None]()
        for bin_, more in freed.items():
            claim = bin_.claim
            if claim is None or claim in seen:
                continue
            if claim.virtual.pinned is None and not claim.users.keys() - gone:
                seen[claim] = None  # it may be mapped anew, to any cell of its level
                tree = self._table.trees[claim.virtual.chain]
                held = self._ranking(bin_.demand).capacity(claim.cell, size)
                gain += idle_cell_capacity(tree, claim.virtual.level, size) - held
            elif self.leaves_go:
                gain += (bin_.cell.idle + more) // size - bin_.cell.idle // size
        return gain


def _by_node(freed: dict[CandidateBin, int]) -> dict[Cell, int]:
    """Leaves that would be idle, by node."""
    nodes: dict[Cell, int] = {}
    for bin_, more in freed.items():
        node = bin_.cell.ancestor(bin_.cell.chain.node_level)
        nodes[node] = nodes.get(node, 0) + more
    return nodes


def _gain(nodes: dict[Cell, int], size: int) -> int:
    """More members that nodes could hold with more idle leaves."""
    return sum((node.idle + more) // size - node.idle // size for node, more in nodes.items())
