"""Where a guaranteed gang fits among the preassigned cells of its VC, mapped and unused ones."""

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
    """Quick bounds: what is idle, and what the VC has left, hold as many members of each size."""
    tree, least = table.trees[demand.chain], demand.sizes[-1]
    if table.idle[demand.chain].total < sum(demand.sizes):
        return False
    unused = {level: vc.unused(demand.chain, level) for level in vc.unused_levels(demand.chain)}
    leaves = sum(count * tree.levels[level - 1].leaf_count for level, count in unused.items())
    if leaves + vc.rankings[demand.chain].usable(least) < sum(demand.sizes):
        return False
    if not has_usable_room(table.idle[demand.chain], demand.sizes):
        return False
    needs = members_at_least(demand.sizes).items()
    return all(_most(table, vc, tree, unused, size) >= count for size, count in needs)


def _most(
    table: AllocationTable, vc: Vc, tree: ChainTree, unused: dict[int, int], size: int
) -> int:
    """Members of a size that there is room for at most."""
    idle = table.idle[tree.name].capacity(tree.root, size)
    new = sum(count * idle_cell_capacity(tree, level, size) for level, count in unused.items())
    if all(level >= tree.node_level for level in unused):
        new = min(new, table.unclaimed[tree.name].capacity(tree.root, size))
    return min(idle, new + vc.rankings[tree.name].capacity(tree.root, size))


def idle_cell_capacity(tree: ChainTree, level: int, size: int) -> int:
    """How many members of a size an idle cell of a level holds."""
    inside = tree.levels[min(level, tree.node_level) - 1].leaf_count
    return tree.levels[level - 1].leaf_count // inside * (inside // size)


def fit_guaranteed(
    table: AllocationTable, vc: Vc, demand: Demand, allowed: AllowedNodes
) -> list[MemberBin] | None:
    """In mapped cells or in unused ones, whatever is closer together; else in both."""
    bins = choose_bins(vc.rankings[demand.chain], demand.sizes, allowed)
    mapped = None if bins is None else [member_bin_in(bin_, demand) for bin_ in bins]
    if mapped is not None and _height(mapped) <= _lowest_height(table, demand):
        return mapped
    opened = _fit_in_openings(table, vc, demand, allowed)
    found = [spots for spots in (mapped, opened) if spots is not None]
    if found:
        return min(found, key=_height)
    return _fit_mixed(table, vc, demand, allowed)


def member_bin_in(bin_: Cell, demand: Demand) -> MemberBin:
    """A spot in a bin of mapped cells, or of any where the gang is opportunistic."""
    claim = bin_.enclosing_claim() if demand.vc is not None else None
    return MemberBin(bin_, claim.cell if claim else None)


def _height(spots: Sequence[MemberBin]) -> int:
    return common_level([spot.bin_ for spot in spots])


def _lowest_height(table: AllocationTable, demand: Demand) -> int:
    """The lowest level whose cells could hold the whole gang, not below node level."""
    tree, total = table.trees[demand.chain], sum(demand.sizes)
    for rung in tree.levels:
        if rung.level >= tree.node_level and rung.leaf_count >= total:
            return rung.level
    return tree.root.level


def _fit_in_openings(
    table: AllocationTable, vc: Vc, demand: Demand, allowed: AllowedNodes
) -> list[MemberBin] | None:
    """All members in unused cells of one level, the lowest that can."""
    if not demand.is_equal:
        return _open_for_unequal(table, vc, demand, allowed)
    tree, size, count = table.trees[demand.chain], demand.sizes[0], len(demand.sizes)
    for level in vc.unused_levels(demand.chain):
        if vc.unused(demand.chain, level) * idle_cell_capacity(tree, level, size) < count:
            continue
        if level == tree.node_level and count > 1:
            found = _open_nodes(table, vc, demand, allowed)
            if found is not None:
                return found
        found = _open_one_by_one(table, vc, demand, level=level, allowed=allowed)
        if found is not None:
            return found
    return None


def _open_for_unequal(
    table: AllocationTable, vc: Vc, demand: Demand, allowed: AllowedNodes
) -> list[MemberBin] | None:
    """Unequal members in unused nodes, or all of them in one larger cell."""
    tree, total = table.trees[demand.chain], sum(demand.sizes)
    for level in vc.unused_levels(demand.chain):
        found = None
        if level == tree.node_level:
            found = _open_nodes(table, vc, demand, allowed)
        elif level > tree.node_level and tree.levels[level - 1].leaf_count >= total:
            found = _open_one(table, demand, level=level, allowed=allowed)
        if found is not None:
            return found
    return None


def _open_one(
    table: AllocationTable, demand: Demand, *, level: int, allowed: AllowedNodes
) -> list[MemberBin] | None:
    """One unused cell above the nodes for all members."""
    wanted = MappingDemand(
        chain=demand.chain,
        level=level,
        size=demand.sizes[0],
        want=len(demand.sizes),
        allowed=allowed,
        budget=demand.budget,
    )
    cell = find_cell_to_map(table, wanted)
    if cell is None:
        return None
    bins = cell.at_level(cell.chain.node_level)
    packed = pack({bin_: bin_.idle for bin_ in bins if allowed(bin_)}, demand.sizes)
    return [MemberBin(bin_, cell) for bin_ in packed] if packed is not None else None


def _open_nodes(
    table: AllocationTable, vc: Vc, demand: Demand, allowed: AllowedNodes
) -> list[MemberBin] | None:
    """Several nodes at once, close together; None also if that would break a promise."""
    bins = choose_bins(table.unclaimed[demand.chain], demand.sizes, allowed)
    if bins is None:
        return None
    nodes = list(dict.fromkeys(bins))
    if len(nodes) > vc.unused(demand.chain, table.trees[demand.chain].node_level):
        return None
    with table.what_if():
        for node in nodes:
            table.map_cell(vc, node)
        if table.supplies[demand.chain].is_safe():
            return [MemberBin(bin_, bin_) for bin_ in bins]
    return None


def _open_one_by_one(
    table: AllocationTable, vc: Vc, demand: Demand, *, level: int, allowed: AllowedNodes
) -> list[MemberBin] | None:
    """Map unused cells of a level until all members have a bin."""
    size, count = demand.sizes[0], len(demand.sizes)
    wanted = MappingDemand(
        chain=demand.chain, level=level, size=size, want=1, allowed=allowed, budget=demand.budget
    )
    if count == 1 and level <= table.trees[demand.chain].node_level:
        cell = find_cell_to_map(table, wanted)  # nothing is to be mapped to see that it fits
        return [MemberBin(cell, cell)] if cell is not None else None
    spots: list[MemberBin] = []
    with table.what_if():
        while len(spots) < count and vc.unused(demand.chain, level):
            want = count - len(spots)
            cell = find_cell_to_map(table, replace(wanted, want=want))
            if cell is None:
                return None
            table.map_cell(vc, cell)
            ranking = vc.rankings[demand.chain]
            bins = choose_bins_in(ranking, cell, size=size, count=want, allowed=allowed)
            spots += [MemberBin(bin_, cell) for bin_ in bins]
    return spots if len(spots) == count else None


def _fit_mixed(
    table: AllocationTable, vc: Vc, demand: Demand, allowed: AllowedNodes
) -> list[MemberBin] | None:
    """One member after the other: in mapped cells while they have room, then in unused ones."""
    ranking = vc.rankings[demand.chain]
    mapped = useful_bins(ranking, demand.sizes, allowed) if len(ranking) else []
    packing = Packing({bin_: ranking.room(bin_) for bin_ in mapped})
    spots: list[MemberBin] = []
    demand.budget.spend(len(demand.sizes))
    rest = sum(demand.sizes)
    with table.what_if():
        for index, size in enumerate(demand.sizes):
            bin_ = packing.put(size)
            if bin_ is None:
                wanted = MappingDemand(
                    chain=demand.chain,
                    level=0,
                    size=size,
                    want=len(demand.sizes) - index,
                    allowed=allowed,
                    budget=demand.budget,
                    looks=FREE_LOOKS_AGAIN if spots else FREE_LOOKS,
                )
                packing.open(_open_cell(table, vc, wanted, rest=rest))
                bin_ = packing.put(size)
            if bin_ is None:
                return None
            rest -= size
            spots.append(member_bin_in(bin_, demand))
        return spots


def _open_cell(
    table: AllocationTable, vc: Vc, wanted: MappingDemand, *, rest: int
) -> dict[Cell, int]:
    """Map an unused cell for members of so many leaf cells in all; returns the rooms of its bins.

    The smallest that holds all of them, if there is one, else the largest.
    """
    tree = table.trees[wanted.chain]
    counts = {level: tree.levels[level - 1].leaf_count for level in vc.unused_levels(wanted.chain)}
    levels = [level for level, leaves in counts.items() if leaves >= wanted.size]
    enough = [level for level in levels if counts[level] >= rest]
    for level in (*enough, *(level for level in reversed(levels) if level not in enough)):
        here = replace(wanted, level=level)
        cell = find_cell_to_map(table, here) or find_cell_to_map(
            table, replace(here, looks=FREE_LOOKS)
        )
        if cell is not None:
            table.map_cell(vc, cell)
            bins = cell.at_level(min(level, tree.node_level))
            return {bin_: bin_.idle for bin_ in bins if bin_.idle and wanted.allowed(bin_)}
    return {}
