"""Fits a guaranteed gang into the preassigned cells of its VC: mapped ones, unused ones, or both.

A mapped cell has bins with known room. An unused cell is mapped for the gang first, to the physical
cell that `cell_mapping` chooses; this happens inside `AllocationTable.what_if` and is undone.
"""

from collections.abc import Sequence
from dataclasses import replace

from extender.cells.budget import FREE_LOOKS, FREE_LOOKS_AGAIN
from extender.cells.fit.bin_choice import (
    choose_bins,
    choose_bins_in,
    common_level,
    has_usable_room,
    members_at_least,
    useful_bins,
)
from extender.cells.fit.cell_mapping import MappingDemand, find_cell_to_map
from extender.cells.fit.demand import AllowedNodes, Demand, MemberBin
from extender.cells.fit.packing import Packing, pack
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import Cell, ChainTree
from extender.cells.state.vcs import Vc


def may_fit(table: AllocationTable, demand: Demand, vc: Vc) -> bool:
    """Quick bounds: False if idle leaves, or what the VC has left, hold too few members."""
    tree, least = table.trees[demand.chain], demand.sizes[-1]
    if table.idle[demand.chain].total < sum(demand.sizes):
        return False
    unused = {level: vc.unused(demand.chain, level) for level in vc.unused_levels(demand.chain)}
    leaves = sum(count * tree.levels[level - 1].leaf_count for level, count in unused.items())
    if leaves + vc.rankings[demand.chain].usable(least) < sum(demand.sizes):
        return False
    if not has_usable_room(table.idle[demand.chain], demand.sizes):
        return False

    def most(size: int) -> int:
        """The most members of a size for which there can be room."""
        idle = table.idle[tree.name].capacity(tree.root, size)
        new = sum(count * tree.idle_capacity(level, size) for level, count in unused.items())
        if all(level >= tree.node_level for level in unused):
            new = min(new, table.unclaimed[tree.name].capacity(tree.root, size))
        return min(idle, new + vc.rankings[tree.name].capacity(tree.root, size))

    return all(most(size) >= count for size, count in members_at_least(demand.sizes).items())


class GuaranteedFit:
    """One attempt to fit a gang into cells of its VC, on some nodes."""

    def __init__(
        self, table: AllocationTable, vc: Vc, demand: Demand, allowed: AllowedNodes
    ) -> None:
        self._table = table
        self._vc = vc
        self._demand = demand
        self._allowed = allowed
        self._tree: ChainTree = table.trees[demand.chain]

    def run(self) -> list[MemberBin] | None:
        """Use mapped cells or unused ones, whichever are closer together; else use both."""
        demand = self._demand
        bins = choose_bins(self._vc.rankings[demand.chain], demand.sizes, self._allowed)
        mapped = None if bins is None else [demand.member_bin(bin_) for bin_ in bins]
        if mapped is not None and _height(mapped) <= self._lowest_height():
            return mapped
        newly_mapped = self._fit_in_unused_cells()
        found = [bins for bins in (mapped, newly_mapped) if bins is not None]
        if found:
            return min(found, key=_height)
        return self._fit_mixed()

    def _lowest_height(self) -> int:
        """The lowest level whose cells can hold the whole gang, at least node level."""
        total = sum(self._demand.sizes)
        for rung in self._tree.levels:
            if rung.level >= self._tree.node_level and rung.leaf_count >= total:
                return rung.level
        return self._tree.root.level

    def _fit_in_unused_cells(self) -> list[MemberBin] | None:
        """Put all members in unused cells of one level, the lowest level where they fit."""
        demand, tree, vc = self._demand, self._tree, self._vc
        if not demand.is_equal:
            return self._fit_unequal_in_unused_cells()
        size, count = demand.sizes[0], len(demand.sizes)
        for level in vc.unused_levels(demand.chain):
            if vc.unused(demand.chain, level) * tree.idle_capacity(level, size) < count:
                continue
            if level == tree.node_level and count > 1:
                found = self._map_nodes()
                if found is not None:
                    return found
            found = self._map_one_by_one(level)
            if found is not None:
                return found
        return None

    def _fit_unequal_in_unused_cells(self) -> list[MemberBin] | None:
        """Put unequal members in unused nodes, or all of them in one larger cell."""
        tree, total = self._tree, sum(self._demand.sizes)
        for level in self._vc.unused_levels(self._demand.chain):
            found = None
            if level == tree.node_level:
                found = self._map_nodes()
            elif level > tree.node_level and tree.levels[level - 1].leaf_count >= total:
                found = self._map_one(level)
            if found is not None:
                return found
        return None

    def _map_one(self, level: int) -> list[MemberBin] | None:
        """Map one unused cell above the nodes for all members."""
        sizes = self._demand.sizes
        wanted = self._wanted(level=level, size=sizes[0], want=len(sizes))
        cell = find_cell_to_map(self._table, wanted)
        if cell is None:
            return None
        bins = cell.at_level(cell.chain.node_level)
        packed = pack({bin_: bin_.idle for bin_ in bins if self._allowed(bin_)}, sizes)
        return [MemberBin(bin_, cell) for bin_ in packed] if packed is not None else None

    def _map_nodes(self) -> list[MemberBin] | None:
        """Map several nodes at once, close together; None also if that breaks a promise."""
        demand = self._demand
        bins = choose_bins(self._table.unclaimed[demand.chain], demand.sizes, self._allowed)
        if bins is None:
            return None
        nodes = list(dict.fromkeys(bins))
        if len(nodes) > self._vc.unused(demand.chain, self._tree.node_level):
            return None
        with self._table.what_if():
            for node in nodes:
                self._table.map_cell(self._vc, node)
            if self._table.supplies[demand.chain].is_safe():
                return [MemberBin(bin_, bin_) for bin_ in bins]
        return None

    def _map_one_by_one(self, level: int) -> list[MemberBin] | None:
        """Map unused cells of a level until all members have a bin."""
        demand, vc, size = self._demand, self._vc, self._demand.sizes[0]
        count = len(demand.sizes)
        wanted = self._wanted(level=level, size=size, want=1)
        if count == 1 and level <= self._tree.node_level:
            cell = find_cell_to_map(self._table, wanted)  # no trial needed: one member fits in it
            return [MemberBin(cell, cell)] if cell is not None else None
        found: list[MemberBin] = []
        with self._table.what_if():
            while len(found) < count and vc.unused(demand.chain, level):
                want = count - len(found)
                cell = find_cell_to_map(self._table, replace(wanted, want=want))
                if cell is None:
                    return None
                self._table.map_cell(vc, cell)
                ranking = vc.rankings[demand.chain]
                bins = choose_bins_in(ranking, cell, size=size, count=want, allowed=self._allowed)
                found += [MemberBin(bin_, cell) for bin_ in bins]
        return found if len(found) == count else None

    def _fit_mixed(self) -> list[MemberBin] | None:
        """Pack one member after the other: in mapped cells while they have room, then unused."""
        demand, ranking = self._demand, self._vc.rankings[self._demand.chain]
        mapped = useful_bins(ranking, demand.sizes, self._allowed) if len(ranking) else []
        packing = Packing({bin_: ranking.room(bin_) for bin_ in mapped})
        found: list[MemberBin] = []
        demand.budget.spend(len(demand.sizes))
        rest = sum(demand.sizes)
        with self._table.what_if():
            for index, size in enumerate(demand.sizes):
                bin_ = packing.put(size)
                if bin_ is None:
                    looks = FREE_LOOKS_AGAIN if found else FREE_LOOKS
                    wanted = self._wanted(level=0, size=size, want=len(demand.sizes) - index)
                    packing.add(self._map_next(replace(wanted, looks=looks), rest=rest))
                    bin_ = packing.put(size)
                if bin_ is None:
                    return None
                rest -= size
                found.append(demand.member_bin(bin_))
            return found

    def _map_next(self, wanted: MappingDemand, *, rest: int) -> dict[Cell, int]:
        """Map an unused cell for members of `rest` leaf cells in all; returns room by bin.

        It is the smallest unused cell that holds all of them, if there is one, else the largest.
        """
        tree, vc = self._tree, self._vc
        unused = vc.unused_levels(wanted.chain)
        counts = {level: tree.levels[level - 1].leaf_count for level in unused}
        levels = [level for level, leaves in counts.items() if leaves >= wanted.size]
        enough = [level for level in levels if counts[level] >= rest]
        for level in (*enough, *(level for level in reversed(levels) if level not in enough)):
            here = replace(wanted, level=level)
            cell = find_cell_to_map(self._table, here) or find_cell_to_map(
                self._table, replace(here, looks=FREE_LOOKS)
            )
            if cell is not None:
                self._table.map_cell(vc, cell)
                bins = cell.at_level(min(level, tree.node_level))
                return {bin_: bin_.idle for bin_ in bins if bin_.idle and self._allowed(bin_)}
        return {}

    def _wanted(self, *, level: int, size: int, want: int) -> MappingDemand:
        return MappingDemand(
            chain=self._demand.chain,
            level=level,
            size=size,
            want=want,
            allowed=self._allowed,
            budget=self._demand.budget,
        )


def _height(bins: Sequence[MemberBin]) -> int:
    return common_level([chosen.bin_ for chosen in bins])
