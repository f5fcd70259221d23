"""Possible victims, and upper bounds on the room that ending them brings.

A gang needs a number of bins for its members. The most that there can be is counted in two ways: by
the leaves that would be idle on the nodes, and by the cells that the VC would have. A set of
victims that fails one of these bounds is never tried, and this rules out most sets.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from extender.cells.fit.bin_choice import members_at_least
from extender.cells.fit.demand import Demand
from extender.cells.preempt.damage import Damage, damage_of, total_damage
from extender.cells.preempt.preemption_case import PreemptionCase
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Claim
from policy.submission import GangKey


@dataclass(slots=True, eq=False)
class CandidateBin:
    """A node, or a preassigned cell below node level, that contains candidates."""

    cell: Cell
    claim: Claim | None
    """The preassigned cell of the preempting gang's VC that contains the bin, if any."""
    demand: Demand
    inside: dict[PlacedGang, int] = field(default_factory=dict)
    """By candidate: the leaves of the bin that its end frees."""

    @property
    def is_useful(self) -> bool:
        """True if the preempting gang could use it: in a cell of its VC, or by mapping one."""
        demand = self.demand
        if not demand.allowed(self.cell) or demand.vc is None:
            return False
        return self.claim is not None or bool(demand.vc.unused_levels(demand.chain))


class VictimCandidates:
    """Possible victims of one preemption, and bounds on what ending them brings.

    Gangs that are only downgraded free the cells of their VC but keep their leaves
    (`frees_leaves=False`).
    """

    def __init__(
        self, table: AllocationTable, case: PreemptionCase, *, frees_leaves: bool = True
    ) -> None:
        self._table = table
        self.frees_leaves = frees_leaves
        self._demands = {demand.chain: demand for demand in case.demands}
        self.bins: dict[Cell, CandidateBin] = {}
        self._damage: dict[PlacedGang, Damage] = {}
        self._bins_of: dict[PlacedGang, list[CandidateBin]] = {}
        self.needs = members_at_least(case.demands[0].sizes)
        """By size: the number of members of this size or larger; the largest size first."""
        self._base = {size: self._at_present(size) for size in self.needs}

    def add(self, gangs: Iterable[PlacedGang], *, most: int | None = None) -> bool:
        """Add candidates, at most `most`; False if there are more."""
        visited = iter(gangs)
        for gang in islice(visited, most):
            if gang not in self._bins_of:
                self._add(gang)
        return next(visited, None) is None

    @property
    def gangs(self) -> list[PlacedGang]:
        """The candidates that hold leaves in chains of the case."""
        return list(self._bins_of)

    def damage_of(self, gangs: Sequence[PlacedGang]) -> Damage:
        """The damage of ending gangs; they need not be candidates."""
        return total_damage([self._damage.get(gang) or damage_of([gang]) for gang in gangs])

    def bins_of(self, gang: PlacedGang) -> Sequence[CandidateBin]:
        """The bins that contain leaves of a candidate."""
        return self._bins_of[gang]

    def users(self, bin_: CandidateBin) -> list[PlacedGang]:
        """Candidates that use the preassigned cell of a bin; empty if other gangs use it, too."""
        keys = bin_.claim.users if bin_.claim is not None and not bin_.claim.is_kept else {}
        users = [self._table.gangs[key] for key in sorted(keys)]
        return users if all(gang in self._bins_of for gang in users) else []

    def _add(self, gang: PlacedGang) -> None:
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
            self._bins_of.setdefault(gang, []).append(bin_)
            self._damage[gang] = damage_of([gang])
        bin_.inside[gang] = bin_.inside.get(gang, 0) + freed

    def _places(self, slot: MemberSlot, demand: Demand) -> Iterator[tuple[Cell, Claim | None, int]]:
        """Bins of a slot in which the VC has or could map cells, with the leaves that are freed."""
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
            # Also if no leaves are freed: if they are bad, the cell can be mapped elsewhere.
            yield (claim.cell if claim.cell.level < node.level else node), claim, freed

    def _at_present(self, size: int) -> tuple[int, int]:
        """Members of a size that fit into idle leaves now, and into cells of the VC."""
        idle = promised = 0
        for chain, demand in self._demands.items():
            assert demand.vc is not None
            tree = self._table.trees[chain]
            idle += self._table.idle[chain].capacity(tree.root, size)
            promised += demand.vc_ranking().capacity(tree.root, size)
            for level in demand.vc.unused_levels(chain) if demand.pinned is None else ():
                promised += demand.vc.unused(chain, level) * tree.idle_capacity(level, size)
        return idle, promised

    def may_spare(self, gangs: Sequence[PlacedGang]) -> Callable[[PlacedGang], bool]:
        """A quick test for the gangs of a set: False if too few leaves are idle without its end."""
        nodes = _by_node(self._freed(gangs))
        left = {
            size: self._base[size][0] + _gain(nodes, size) - count
            for size, count in self.needs.items()
        }

        def may_spare_one(gang: PlacedGang) -> bool:
            less = _by_node({bin_: bin_.inside[gang] for bin_ in self._bins_of.get(gang, ())})
            for size, spare in left.items():
                lost = sum(
                    (node.idle + nodes[node]) // size - (node.idle + nodes[node] - count) // size
                    for node, count in less.items()
                )
                if lost > spare:
                    return False
            return True

        return may_spare_one if self.frees_leaves else lambda _: True

    def may_suffice(self, gangs: Sequence[PlacedGang]) -> bool:
        """False if the preempting gang certainly does not fit when these gangs end."""
        freed, gone = self._freed(gangs), {gang.key for gang in gangs}
        return all(self._may_hold(size, freed, gone) for size in self.needs)

    def may_hold(self, size: int, gangs: Sequence[PlacedGang]) -> bool:
        """False if there are certainly too few bins of a size when these gangs end."""
        return self._may_hold(size, self._freed(gangs), {gang.key for gang in gangs})

    def _freed(self, gangs: Sequence[PlacedGang]) -> dict[CandidateBin, int]:
        freed: dict[CandidateBin, int] = {}
        for gang in gangs:
            for bin_ in self._bins_of.get(gang, ()):
                freed[bin_] = freed.get(bin_, 0) + bin_.inside[gang]
        return freed

    def missing(self, size: int) -> int:
        """The number of bins of a size that are missing now, at least."""
        return max(0, self.needs[size] - min(self._base[size]))

    def most_gained(self, gang: PlacedGang, size: int) -> int:
        """The most bins of a size that the end of one candidate can bring."""
        gained = dict[Cell, int]()
        for bin_ in self._bins_of[gang]:
            claim = bin_.claim
            if claim is not None and claim.virtual.pinned is None:
                tree = self._table.trees[claim.virtual.chain]
                gained[claim.cell] = tree.idle_capacity(claim.virtual.level, size)
            else:
                gained[bin_.cell] = -(-bin_.inside[gang] // size)
        return sum(gained.values())

    def _may_hold(self, size: int, freed: dict[CandidateBin, int], gone: set[GangKey]) -> bool:
        count = self.needs[size]
        idle, promised = self._base[size]
        gain = _gain(_by_node(freed), size) if self.frees_leaves else 0
        return idle + gain >= count and promised + self._promised_gain(freed, size, gone) >= count

    def _promised_gain(self, freed: dict[CandidateBin, int], size: int, gone: set[GangKey]) -> int:
        """The most additional members that cells of the VC can hold."""
        gain, seen = 0, dict[Claim, None]()
        for bin_, more in freed.items():
            claim = bin_.claim
            if claim is None or claim in seen:
                continue
            is_fixed = claim.virtual.pinned is not None or claim.is_kept
            if not is_fixed and not claim.users.keys() - gone:
                seen[claim] = None  # it can be mapped again, to any cell of its level
                tree = self._table.trees[claim.virtual.chain]
                held = bin_.demand.vc_ranking().capacity(claim.cell, size)
                gain += tree.idle_capacity(claim.virtual.level, size) - held
            elif self.frees_leaves:
                gain += (bin_.cell.idle + more) // size - bin_.cell.idle // size
        return gain


def _by_node(freed: dict[CandidateBin, int]) -> dict[Cell, int]:
    """Freed leaves by node."""
    nodes: dict[Cell, int] = {}
    for bin_, more in freed.items():
        node = bin_.cell.ancestor(bin_.cell.chain.node_level)
        nodes[node] = nodes.get(node, 0) + more
    return nodes


def _gain(nodes: dict[Cell, int], size: int) -> int:
    """Additional members that nodes hold with more idle leaves."""
    return sum((node.idle + more) // size - node.idle // size for node, more in nodes.items())
