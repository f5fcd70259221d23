"""Gives each member the bin with the least damage: a first set of victims.

One member after the other, the largest first, gets the bin whose clearing does the least damage: in
a mapped cell of the VC, or in a cell to which an unused one is mapped for it. The search carries
this out inside `AllocationTable.what_if` (it maps cells, removes gangs and holds leaves), so each
choice sees the ones before it. The gangs that held the chosen leaves are the victims. The cost is
proportional to the gang and its victims; `victims` looks for a better set afterwards.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from extender.cells.budget import CLEARING_LOOKS, FREE_LOOKS_INSIDE
from extender.cells.fit.bin_choice import members_at_least
from extender.cells.fit.cell_mapping import is_safe
from extender.cells.fit.demand import AllowedNodes, Demand
from extender.cells.fit.gang_fit import PLACEHOLDER, seat_of
from extender.cells.fit.leaf_choice import LeafChooser
from extender.cells.model import Seat
from extender.cells.preempt.damage import Damage, total_damage
from extender.cells.preempt.eviction_ranking import BinSource, EvictionRanking, EvictionRankings
from extender.cells.preempt.evictions_within import EvictionsWithin
from extender.cells.preempt.preemption_case import Displacement, PreemptionCase
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.state.tree import Cell

Bins = EvictionRanking | EvictionsWithin


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """A bin that can be cleared for a member, with the damage of clearing it."""

    damage: Damage
    bin_: Cell
    ranking: Bins
    demand: Demand
    to_map: Cell | None = None
    """The physical cell to which an unused preassigned cell is mapped for it."""


class GreedySearch:
    """Finds seats for the gang of one case, and the victims that hold them."""

    def __init__(
        self, table: AllocationTable, rankings: EvictionRankings, case: PreemptionCase
    ) -> None:
        self._table = table
        self._rankings = rankings
        self._case = case
        self._few: dict[tuple[BinSource, AllowedNodes], Bins] = {}
        """Rankings of the allowed nodes only, for cases in which most nodes are not allowed."""

    def is_impossible(self) -> bool:
        """Quick bound: True if there are too few bins even if all possible victims ended.

        Always False if gangs of the VC may be ended, since their cells could be mapped elsewhere.
        """
        return self._case.below == 0 and self.lacks_bins()

    def lacks_bins(self) -> bool:
        """The same, with the bins in which gangs of the VC may be ended where they are."""
        needs = members_at_least(self._case.demands[0].sizes).items()
        return any(
            sum(self._most(demand, size) for demand in self._case.demands) < count
            for size, count in needs
        )

    def _most(self, demand: Demand, size: int) -> int:
        """The most members of a size for which a chain can have room."""
        mapped = self._ranking(self._mapped(demand, size), demand.allowed).capacity
        tree, promised, unclaimed = self._table.trees[demand.chain], 0, dict[BinSource, int]()
        for level in self._unused_levels(demand, size):
            source = self._unclaimed(demand, level, size)
            unclaimed[source] = self._ranking(source, demand.allowed).capacity
            promised += self._case.vc.unused(demand.chain, level) * tree.idle_capacity(level, size)
        return mapped + min(promised, sum(unclaimed.values()))

    def find(self) -> Displacement | None:
        """Find seats for all members and the gangs that hold them; None if none were found."""
        seats: dict[int, Seat] = {}
        with self._table.what_if():
            for index, is_first in self._order():
                seat = self._seat(index, is_first=is_first)
                if seat is None:
                    return None
                seats[index] = seat
        found = tuple(seats[index] for index in sorted(seats))
        return Displacement(self._holders(found), found)

    def _order(self) -> Iterator[tuple[int, bool]]:
        """Members by size, the largest first; before them the asking one, if its nodes differ."""
        demand = self._case.demands[0]
        first = demand.sizes.index(demand.first_size)
        if demand.allowed is not demand.allowed_first:
            yield first, True
        for index in range(len(demand.sizes)):
            if demand.allowed is demand.allowed_first or index != first:
                yield index, False

    def _holders(self, seats: tuple[Seat, ...]) -> tuple[PlacedGang, ...]:
        holders = (leaf.holder for seat in seats for leaf in self._table.leaves_of(seat))
        return tuple(dict.fromkeys(gang for gang in holders if gang is not None))

    def cheapest_gangs(self, most: int) -> dict[PlacedGang, None]:
        """The victims of the bins with the least damage, about `most`."""
        found: dict[PlacedGang, None] = {}
        for demand in self._case.demands:
            for size in dict.fromkeys(demand.sizes):
                sources = [
                    self._unclaimed(demand, lv, size) for lv in self._unused_levels(demand, size)
                ]
                for source in dict.fromkeys((self._mapped(demand, size), *sources)):
                    found |= self._gangs_of(self._ranking(source, demand.allowed), demand, most)
        return found

    def _gangs_of(self, ranking: Bins, demand: Demand, most: int) -> dict[PlacedGang, None]:
        found: dict[PlacedGang, None] = {}
        for _, bin_ in islice(ranking.cheapest(), most):
            if demand.allowed(bin_):
                found.update(dict.fromkeys(ranking.victims(bin_)))
            if len(found) >= most:
                break
        return found

    def sources(self) -> Iterator[BinSource]:
        """All sources of bins whose rankings the search may read."""
        for demand in self._case.demands:
            for size in dict.fromkeys(demand.sizes):
                yield self._mapped(demand, size)
                for level in self._unused_levels(demand, size):
                    yield self._unclaimed(demand, level, size)

    def _seat(self, index: int, *, is_first: bool) -> Seat | None:
        """Find the seat with the least damage for a member, and take it."""
        best: _Option | None = None
        for demand in self._case.demands:
            allowed = demand.allowed_first if is_first else demand.allowed
            best = self._better(best, demand, index, allowed)
        return self._take(best, self._case.demands[0].sizes[index]) if best is not None else None

    def _take(self, option: _Option, size: int) -> Seat:
        demand, bin_ = option.demand, option.bin_
        victims = option.ranking.victims(bin_)
        self._case.budget.spend()  # once: there are no more victims than leaves of the member
        if option.to_map is not None:
            self._table.map_cell(self._case.vc, option.to_map)
        for gang in victims:
            self._table.remove_held_slots(gang, keeps_claims=True)
        leaves = LeafChooser().take(bin_, size)
        self._table.hold(leaves, PLACEHOLDER)
        claim = bin_.enclosing_claim()
        return seat_of(demand, leaves, claim=claim.cell if claim else None)

    # -- choosing a bin

    def _better(
        self, best: _Option | None, demand: Demand, index: int, allowed: AllowedNodes
    ) -> _Option | None:
        """The best option of a chain, in mapped or unused cells, or `best` if it is better."""
        size = demand.sizes[index]
        ranking = self._ranking(self._mapped(demand, size), allowed)
        offered = ((damage, bin_) for damage, bin_ in ranking.cheapest() if allowed(bin_))
        for damage, bin_ in islice(offered, 1):
            if best is None or damage < best.damage:
                best = _Option(damage=damage, bin_=bin_, ranking=ranking, demand=demand)
        for level in self._unused_levels(demand, size):
            ranking = self._ranking(self._unclaimed(demand, level, size), allowed)
            if best is not None and not _may_be_cheaper(ranking, level, best):
                continue
            if level <= self._table.trees[demand.chain].node_level:
                found = self._best_bin_to_map(demand, level, ranking, allowed)
            else:
                want = len(demand.sizes) - index
                found = self._best_cell_to_map(demand, level, ranking, allowed, want=want)
            if found is not None and (best is None or found.damage < best.damage):
                best = found
        return best

    def _unused_levels(self, demand: Demand, size: int) -> list[int]:
        """Levels of unused cells that can hold a member of a size."""
        if demand.pinned is not None:
            return []
        rungs = self._table.trees[demand.chain].levels
        levels = self._case.vc.unused_levels(demand.chain)
        return [level for level in levels if rungs[level - 1].leaf_count >= size]

    def _mapped(self, demand: Demand, size: int) -> BinSource:
        return BinSource(
            chain=demand.chain,
            size=size,
            vc=self._case.vc.name,
            pinned=demand.pinned,
            below=self._case.below,
        )

    def _unclaimed(self, demand: Demand, level: int, size: int) -> BinSource:
        node_level = self._table.trees[demand.chain].node_level
        return BinSource(chain=demand.chain, size=size, level=min(level, node_level))

    def _ranking(self, source: BinSource, allowed: AllowedNodes) -> Bins:
        """The ranking of a source; of the allowed nodes only, if most of the best are not."""
        few = self._few.get((source, allowed))
        if few is not None:
            few.refresh()
            return few
        known = self._rankings.of(source)
        first = [bin_ for _, bin_ in islice(known.cheapest(), CLEARING_LOOKS)]
        if allowed.nodes is None or 2 * sum(map(allowed, first)) >= len(first):
            return known
        self._case.budget.spend(1 + len(allowed.nodes) // CLEARING_LOOKS)
        few = self._few[source, allowed] = self._within(known, source, allowed)
        return few

    def _within(self, known: EvictionRanking, source: BinSource, allowed: AllowedNodes) -> Bins:
        """The bins on allowed nodes, ranked anew if these are few."""
        nodes = allowed.nodes or ()
        if 2 * len(nodes) < len(known.tree.by_node):
            return self._rankings.only(source, nodes)
        return EvictionsWithin(known, allowed)

    def _best_bin_to_map(
        self, demand: Demand, level: int, ranking: Bins, allowed: AllowedNodes
    ) -> _Option | None:
        """The cheapest cell, at most at node level, to which an unused one may be mapped."""
        may_map = self._may_map(demand, level)
        for damage, bin_ in islice(ranking.cheapest(), CLEARING_LOOKS):
            if allowed(bin_) and may_map(bin_):
                return _Option(
                    damage=damage, bin_=bin_, ranking=ranking, demand=demand, to_map=bin_
                )
        found = [
            (entry, cell)
            for cell in self._free_cells(demand, level)
            if allowed(cell) and (entry := ranking.entry(cell)) is not None and may_map(cell)
        ]
        if not found:
            self._case.budget.is_cut |= len(ranking) > CLEARING_LOOKS
            return None
        entry, bin_ = min(found, key=lambda pair: pair[0])
        return _Option(damage=entry[0], bin_=bin_, ranking=ranking, demand=demand, to_map=bin_)

    def _best_cell_to_map(
        self,
        demand: Demand,
        level: int,
        ranking: Bins,
        allowed: AllowedNodes,
        *,
        want: int,
    ) -> _Option | None:
        """The cell above the nodes that is cheapest to clear for `want` members."""
        may_map, cells = self._may_map(demand, level), self._table.trees[demand.chain].cells
        cheap = (bin_.ancestor(level) for _, bin_ in islice(ranking.cheapest(), 4 * CLEARING_LOOKS))
        best: tuple[tuple[int, Damage, int], Cell, tuple[Damage, int]] | None = None
        for cell in dict.fromkeys((*cheap, *self._free_cells(demand, level))):
            bins = [
                (entry[0], bin_.order)
                for bin_ in ranking.bins_in(cell)
                if (entry := ranking.entry(bin_)) is not None and allowed(bin_)
            ]
            if not bins:
                continue
            bins = sorted(bins)[:want]
            score = (want - len(bins), total_damage([damage for damage, _ in bins]), cell.order)
            if (best is None or score < best[0]) and may_map(cell):
                best = (score, cell, bins[0])
        if best is None:
            self._case.budget.is_cut |= len(ranking) > CLEARING_LOOKS
            return None
        _, cell, (damage, order) = best
        return _Option(
            damage=damage, bin_=cells[order], ranking=ranking, demand=demand, to_map=cell
        )

    def _may_map(self, demand: Demand, level: int) -> Callable[[Cell], bool]:
        """A test for cells: True if it is unclaimed and mapping it to the VC breaks no promise."""
        supply = self._table.supplies[demand.chain]
        highest = supply.highest_split(level)

        def may_map(cell: Cell) -> bool:
            if not cell.is_unclaimed() or supply.free_cell_around(cell).level > highest:
                return False
            return is_safe(self._table, cell)

        return may_map

    def _free_cells(self, demand: Demand, level: int) -> Iterator[Cell]:
        """The first cells of a level on the free list, or inside larger free cells."""
        supply = self._table.supplies[demand.chain]
        for free_level in range(level, supply.highest_split(level) + 1):
            for around in islice(supply.free(free_level), CLEARING_LOOKS):
                yield from islice(around.at_level(level), FREE_LOOKS_INSIDE)


def _may_be_cheaper(ranking: Bins, level: int, best: _Option) -> bool:
    """False if no bin of a ranking has less damage than the best option.

    Above the nodes younger work alone does not justify mapping one more cell, because members
    would be further apart.
    """
    for damage, bin_ in islice(ranking.cheapest(), 1):
        if level > bin_.chain.node_level:
            return damage[:3] < best.damage[:3]
        return damage < best.damage
    return False
