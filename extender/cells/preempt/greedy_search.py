"""Cells first: where a guaranteed gang could be at the least damage, and so who has to end.

One member after the other, the largest first, gets the bin that is cheapest to clear: in a mapped
cell of its VC, or in a cell that an unused one is mapped to for it. All of that happens, inside
`Table.what_if`: cells are mapped, gangs are gone, leaves are held, so every next choice sees the
ones before it. Whoever was on the leaves that were chosen is a victim. That is a way, found at the
cost of the gang and its victims; whether there is a better one is asked in `victims`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from extender.cells.budget import CLEARING_LOOKS, FREE_LOOKS_INSIDE
from extender.cells.fit.bin_choice import members_at_least
from extender.cells.fit.cell_mapping import is_safe
from extender.cells.fit.demand import AllowedNodes, Demand
from extender.cells.fit.gang_fit import PLACEHOLDER, seat_of
from extender.cells.fit.guaranteed_fit import idle_cell_capacity
from extender.cells.fit.leaf_choice import LeafChooser
from extender.cells.model import Seat
from extender.cells.preempt.damage import Damage, total
from extender.cells.preempt.eviction_ranking import BinSource, EvictionRanking, EvictionRankings
from extender.cells.preempt.preemption_case import Displacement, PreemptionCase
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.state.tree import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """A bin for a member."""

    damage: Damage
    bin_: Cell
    clearance: EvictionRanking
    demand: Demand
    opened: Cell | None = None
    """What an unused preassigned cell is mapped to for it."""


class GreedySearch:
    """Finds a place for the gang of one case, whoever is there now."""

    def __init__(
        self, table: AllocationTable, clearances: EvictionRankings, case: PreemptionCase
    ) -> None:
        self._table = table
        self._clearances = clearances
        self._case = case
        self._few: dict[tuple[BinSource, AllowedNodes], EvictionRanking] = {}
        """Clearances of the nodes that are offered, where most are not."""

    def is_hopeless(self) -> bool:
        """True if there are too few bins even without all who may be ended; quick.

        Gangs of the VC that may be ended leave cells that could be mapped elsewhere: then nothing
        is said.
        """
        if self._case.below > 0:
            return False
        needs = members_at_least(self._case.demands[0].sizes).items()
        return any(
            sum(self._most(demand, size) for demand in self._case.demands) < count
            for size, count in needs
        )

    def _most(self, demand: Demand, size: int) -> int:
        """Members of a size for which a chain could have room at most."""
        mapped = self._clearance(self._mapped(demand, size), demand.allowed).capacity
        tree, promised, unclaimed = self._table.trees[demand.chain], 0, dict[BinSource, int]()
        for level in self._unused_levels(demand, size):
            source = self._unclaimed(demand, level, size)
            unclaimed[source] = self._clearance(source, demand.allowed).capacity
            promised += self._case.vc.unused(demand.chain, level) * idle_cell_capacity(
                tree, level, size
            )
        return mapped + min(promised, sum(unclaimed.values()))

    def find(self) -> Displacement | None:
        """Seats for all members, and who is there; None if none were found."""
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
        """The largest member first; before it the one that asks, if it has nodes of its own."""
        demand = self._case.demands[0]
        first = demand.sizes.index(demand.first_size)
        if demand.allowed is not demand.allowed_first:
            yield first, True
        for index in range(len(demand.sizes)):
            if demand.allowed is demand.allowed_first or index != first:
                yield index, False

    def _holders(self, seats: tuple[Seat, ...]) -> tuple[PlacedGang, ...]:
        found: dict[PlacedGang, None] = {}
        for seat in seats:
            by_address = self._table.trees[seat.chain].by_address
            holders = (by_address[address].holder for address in seat.leaves)
            found.update((gang, None) for gang in holders if gang is not None)
        return tuple(found)

    def cheapest(self, most: int) -> dict[PlacedGang, None]:
        """Gangs of the bins that are cheapest to clear for a member, about so many."""
        found: dict[PlacedGang, None] = {}
        for demand in self._case.demands:
            for size in dict.fromkeys(demand.sizes):
                sources = [
                    self._unclaimed(demand, lv, size) for lv in self._unused_levels(demand, size)
                ]
                for source in dict.fromkeys((self._mapped(demand, size), *sources)):
                    found |= self._gangs_of(self._clearance(source, demand.allowed), demand, most)
        return found

    def _gangs_of(
        self, clearance: EvictionRanking, demand: Demand, most: int
    ) -> dict[PlacedGang, None]:
        found: dict[PlacedGang, None] = {}
        for _, bin_ in islice(clearance.cheapest(), most):
            if demand.allowed(bin_):
                found.update(dict.fromkeys(clearance.victims(bin_)))
            if len(found) >= most:
                break
        return found

    def _seat(self, index: int, *, is_first: bool) -> Seat | None:
        """The cheapest seat for a member, taken."""
        best: _Option | None = None
        for demand in self._case.demands:
            allowed = demand.allowed_first if is_first else demand.allowed
            best = self._better(best, demand, index, allowed)
        return self._take(best, self._case.demands[0].sizes[index]) if best is not None else None

    def _take(self, option: _Option, size: int) -> Seat:
        demand, bin_ = option.demand, option.bin_
        victims = option.clearance.victims(bin_)
        self._case.budget.spend()  # not for each victim: each has a leaf of the member's at least
        if option.opened is not None:
            self._table.map_cell(self._case.vc, option.opened)
        for gang in victims:
            self._table.vacate(gang, keeps_claims=True)
        leaves = LeafChooser().take(bin_, size)
        self._table.hold(leaves, PLACEHOLDER)
        claim = bin_.enclosing_claim()
        return seat_of(demand, leaves, claim=claim.cell if claim else None)

    # -- where

    def _better(
        self, best: _Option | None, demand: Demand, index: int, allowed: AllowedNodes
    ) -> _Option | None:
        """The cheapest bin of a chain, or another that is cheaper: mapped, then unused ones."""
        size = demand.sizes[index]
        clearance = self._clearance(self._mapped(demand, size), allowed)
        offered = ((harm, bin_) for harm, bin_ in clearance.cheapest() if allowed(bin_))
        for harm, bin_ in islice(offered, 1):
            if best is None or harm < best.damage:
                best = _Option(damage=harm, bin_=bin_, clearance=clearance, demand=demand)
        for level in self._unused_levels(demand, size):
            clearance = self._clearance(self._unclaimed(demand, level, size), allowed)
            if best is not None and not _may_be_cheaper(clearance, level, best):
                continue
            if level <= self._table.trees[demand.chain].node_level:
                found = self._open_bin(demand, level, clearance, allowed)
            else:
                want = len(demand.sizes) - index
                found = self._open_cell(demand, level, clearance, allowed, want=want)
            if found is not None and (best is None or found.damage < best.damage):
                best = found
        return best

    def _unused_levels(self, demand: Demand, size: int) -> list[int]:
        """Levels of unused cells that could hold a member."""
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

    def _clearance(self, source: BinSource, allowed: AllowedNodes) -> EvictionRanking:
        """Bins by their price; where most of the cheapest are not offered, of offered nodes."""
        few = self._few.get((source, allowed))
        if few is not None:
            few.refresh()
            return few
        known = self._clearances.of(source)
        first = [bin_ for _, bin_ in islice(known.cheapest(), CLEARING_LOOKS)]
        if allowed.nodes is None or 2 * sum(map(allowed, first)) >= len(first):
            return known
        self._case.budget.spend(1 + len(allowed.nodes) // CLEARING_LOOKS)
        few = self._few[source, allowed] = self._clearances.only(source, allowed.nodes)
        return few

    def _open_bin(
        self, demand: Demand, level: int, clearance: EvictionRanking, allowed: AllowedNodes
    ) -> _Option | None:
        """The cheapest cell up to node level that an unused one may be mapped to."""
        may_map = self._may_map(demand, level)
        for harm, bin_ in islice(clearance.cheapest(), CLEARING_LOOKS):
            if allowed(bin_) and may_map(bin_):
                return _Option(
                    damage=harm, bin_=bin_, clearance=clearance, demand=demand, opened=bin_
                )
        priced = [
            (entry, cell)
            for cell in self._free_cells(demand, level)
            if allowed(cell) and (entry := clearance.price(cell)) is not None and may_map(cell)
        ]
        if not priced:
            self._case.budget.is_cut |= len(clearance) > CLEARING_LOOKS
            return None
        entry, bin_ = min(priced, key=lambda pair: pair[0])
        return _Option(damage=entry[0], bin_=bin_, clearance=clearance, demand=demand, opened=bin_)

    def _open_cell(
        self,
        demand: Demand,
        level: int,
        clearance: EvictionRanking,
        allowed: AllowedNodes,
        *,
        want: int,
    ) -> _Option | None:
        """The cell above the nodes that is cheapest to clear for so many members."""
        may_map, cells = self._may_map(demand, level), self._table.trees[demand.chain].cells
        cheap = (
            bin_.ancestor(level) for _, bin_ in islice(clearance.cheapest(), 4 * CLEARING_LOOKS)
        )
        best: tuple[tuple[int, Damage, int], Cell, int] | None = None
        for cell in dict.fromkeys((*cheap, *self._free_cells(demand, level))):
            prices = [
                (entry[0], bin_.order)
                for bin_ in clearance.bins_in(cell)
                if (entry := clearance.price(bin_)) is not None and allowed(bin_)
            ]
            if not prices:
                continue
            prices = sorted(prices)[:want]
            score = (want - len(prices), total([harm for harm, _ in prices]), cell.order)
            if (best is None or score < best[0]) and may_map(cell):
                best = (score, cell, prices[0][1])
        if best is None:
            self._case.budget.is_cut |= len(clearance) > CLEARING_LOOKS
            return None
        bin_ = cells[best[2]]
        price = clearance.price(bin_)
        assert price is not None
        return _Option(
            damage=price[0], bin_=bin_, clearance=clearance, demand=demand, opened=best[1]
        )

    def _may_map(self, demand: Demand, level: int) -> Callable[[Cell], bool]:
        """Whether a cell is nobody's, and no promise is broken if it becomes the VC's."""
        supply = self._table.supplies[demand.chain]
        highest = supply.highest_split(level)

        def may_map(cell: Cell) -> bool:
            if not cell.is_unclaimed() or supply.free_cell_around(cell).level > highest:
                return False
            return is_safe(self._table, cell)

        return may_map

    def _free_cells(self, demand: Demand, level: int) -> Iterator[Cell]:
        """The first cells of the free list, of a level or inside of larger ones."""
        supply = self._table.supplies[demand.chain]
        for free_level in range(level, supply.highest_split(level) + 1):
            for around in islice(supply.free(free_level), CLEARING_LOOKS):
                yield from islice(around.at_level(level), FREE_LOOKS_INSIDE)


def _may_be_cheaper(clearance: EvictionRanking, level: int, best: _Option) -> bool:
    """False if no bin of a clearance is cheaper than the best known.

    Above the nodes youth alone is no reason to open one more cell: members would be far apart.
    """
    for harm, bin_ in islice(clearance.cheapest(), 1):
        if level > bin_.chain.node_level:
            return harm[:2] < best.damage[:2]
        return harm < best.damage
    return False
