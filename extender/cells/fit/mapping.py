"""Where a guaranteed gang fits among the preassigned cells of its VC, mapped and unused ones."""

from collections.abc import Sequence
from dataclasses import replace

from extender.cells.budget import FREE_LOOKS, FREE_LOOKS_AGAIN
from extender.cells.fit.bins import are_usable, common_level, fill, gather, needs_of, useful_bins
from extender.cells.fit.demand import Allowed, Demand, Spot
from extender.cells.fit.openings import Opening, find_opening
from extender.cells.fit.packing import Packing, pack
from extender.cells.state.table import Table
from extender.cells.state.tree import Cell, ChainTree
from extender.cells.state.vcs import Vc


def may_fit(table: Table, demand: Demand, vc: Vc) -> bool:
    """Quick bounds: what is idle, and what the VC has left, hold as many members of each size."""
    tree, least = table.trees[demand.chain], demand.sizes[-1]
    if table.idle[demand.chain].total < sum(demand.sizes):
        return False
    unused = {level: vc.unused(demand.chain, level) for level in vc.unused_levels(demand.chain)}
    leaves = sum(count * tree.levels[level - 1].leaf_count for level, count in unused.items())
    if leaves + vc.rankings[demand.chain].usable(least) < sum(demand.sizes):
        return False
    if not are_usable(table.idle[demand.chain], demand.sizes):
        return False
    needs = needs_of(demand.sizes).items()
    return all(_most(table, vc, tree, unused, size) >= count for size, count in needs)


def _most(table: Table, vc: Vc, tree: ChainTree, unused: dict[int, int], size: int) -> int:
    """Members of a size that there is room for at most."""
    idle = table.idle[tree.name].capacity(tree.root, size)
    new = sum(count * pristine(tree, level, size) for level, count in unused.items())
    if all(level >= tree.node_level for level in unused):
        new = min(new, table.unclaimed[tree.name].capacity(tree.root, size))
    return min(idle, new + vc.rankings[tree.name].capacity(tree.root, size))


def pristine(tree: ChainTree, level: int, size: int) -> int:
    """How many members of a size an idle cell of a level holds."""
    inside = tree.levels[min(level, tree.node_level) - 1].leaf_count
    return tree.levels[level - 1].leaf_count // inside * (inside // size)


def fit_guaranteed(table: Table, vc: Vc, demand: Demand, allowed: Allowed) -> list[Spot] | None:
    """In mapped cells or in unused ones, whatever is closer together; else in both."""
    bins = gather(vc.rankings[demand.chain], demand.sizes, allowed)
    mapped = None if bins is None else [spot_in(bin_, demand) for bin_ in bins]
    if mapped is not None and _height(mapped) <= _lowest_height(table, demand):
        return mapped
    opened = _fit_in_openings(table, vc, demand, allowed)
    found = [spots for spots in (mapped, opened) if spots is not None]
    if found:
        return min(found, key=_height)
    return _fit_mixed(table, vc, demand, allowed)


def spot_in(bin_: Cell, demand: Demand) -> Spot:
    """A spot in a bin of mapped cells, or of any where the gang is opportunistic."""
    claim = bin_.enclosing_claim() if demand.vc is not None else None
    return Spot(bin_, claim.cell if claim else None)


def _height(spots: Sequence[Spot]) -> int:
    return common_level([spot.bin_ for spot in spots])


def _lowest_height(table: Table, demand: Demand) -> int:
    """The lowest level whose cells could hold the whole gang, not below node level."""
    tree, total = table.trees[demand.chain], sum(demand.sizes)
    for rung in tree.levels:
        if rung.level >= tree.node_level and rung.leaf_count >= total:
            return rung.level
    return tree.root.level


def _fit_in_openings(table: Table, vc: Vc, demand: Demand, allowed: Allowed) -> list[Spot] | None:
    """All members in unused cells of one level, the lowest that can."""
    if not demand.is_equal:
        return _open_for_unequal(table, vc, demand, allowed)
    tree, size, count = table.trees[demand.chain], demand.sizes[0], len(demand.sizes)
    for level in vc.unused_levels(demand.chain):
        if vc.unused(demand.chain, level) * pristine(tree, level, size) < count:
            continue
        if level == tree.node_level and count > 1:
            found = _open_nodes(table, vc, demand, allowed)
            if found is not None:
                return found
        found = _open_one_by_one(table, vc, demand, level=level, allowed=allowed)
        if found is not None:
            return found
    return None


def _open_for_unequal(table: Table, vc: Vc, demand: Demand, allowed: Allowed) -> list[Spot] | None:
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


def _open_one(table: Table, demand: Demand, *, level: int, allowed: Allowed) -> list[Spot] | None:
    """One unused cell above the nodes for all members."""
    wanted = Opening(
        chain=demand.chain,
        level=level,
        size=demand.sizes[0],
        want=len(demand.sizes),
        allowed=allowed,
        budget=demand.budget,
    )
    cell = find_opening(table, wanted)
    if cell is None:
        return None
    bins = cell.at_level(cell.chain.node_level)
    packed = pack({bin_: bin_.idle for bin_ in bins if allowed(bin_)}, demand.sizes)
    return [Spot(bin_, cell) for bin_ in packed] if packed is not None else None


def _open_nodes(table: Table, vc: Vc, demand: Demand, allowed: Allowed) -> list[Spot] | None:
    """Several nodes at once, close together; None also if that would break a promise."""
    bins = gather(table.unclaimed[demand.chain], demand.sizes, allowed)
    if bins is None:
        return None
    nodes = list(dict.fromkeys(bins))
    if len(nodes) > vc.unused(demand.chain, table.trees[demand.chain].node_level):
        return None
    with table.what_if():
        for node in nodes:
            table.map_cell(vc, node)
        if table.supplies[demand.chain].is_safe():
            return [Spot(bin_, bin_) for bin_ in bins]
    return None


def _open_one_by_one(
    table: Table, vc: Vc, demand: Demand, *, level: int, allowed: Allowed
) -> list[Spot] | None:
    """Map unused cells of a level until all members have a bin."""
    size, count = demand.sizes[0], len(demand.sizes)
    wanted = Opening(
        chain=demand.chain, level=level, size=size, want=1, allowed=allowed, budget=demand.budget
    )
    if count == 1 and level <= table.trees[demand.chain].node_level:
        cell = find_opening(table, wanted)  # nothing is to be mapped to see that it fits
        return [Spot(cell, cell)] if cell is not None else None
    spots: list[Spot] = []
    with table.what_if():
        while len(spots) < count and vc.unused(demand.chain, level):
            want = count - len(spots)
            cell = find_opening(table, replace(wanted, want=want))
            if cell is None:
                return None
            table.map_cell(vc, cell)
            ranking = vc.rankings[demand.chain]
            bins = fill(ranking, cell, size=size, count=want, allowed=allowed)
            spots += [Spot(bin_, cell) for bin_ in bins]
    return spots if len(spots) == count else None


def _fit_mixed(table: Table, vc: Vc, demand: Demand, allowed: Allowed) -> list[Spot] | None:
    """One member after the other: in mapped cells while they have room, then in unused ones."""
    ranking = vc.rankings[demand.chain]
    mapped = useful_bins(ranking, demand.sizes, allowed) if len(ranking) else []
    packing = Packing({bin_: ranking.room(bin_) for bin_ in mapped})
    spots: list[Spot] = []
    demand.budget.spend(len(demand.sizes))
    rest = sum(demand.sizes)
    with table.what_if():
        for index, size in enumerate(demand.sizes):
            bin_ = packing.put(size)
            if bin_ is None:
                wanted = Opening(
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
            spots.append(spot_in(bin_, demand))
        return spots


def _open_cell(table: Table, vc: Vc, wanted: Opening, *, rest: int) -> dict[Cell, int]:
    """Map an unused cell for members of so many leaf cells in all; returns the rooms of its bins.

    The smallest that holds all of them, if there is one, else the largest.
    """
    tree = table.trees[wanted.chain]
    counts = {level: tree.levels[level - 1].leaf_count for level in vc.unused_levels(wanted.chain)}
    levels = [level for level, leaves in counts.items() if leaves >= wanted.size]
    enough = [level for level in levels if counts[level] >= rest]
    for level in (*enough, *(level for level in reversed(levels) if level not in enough)):
        here = replace(wanted, level=level)
        cell = find_opening(table, here) or find_opening(table, replace(here, looks=FREE_LOOKS))
        if cell is not None:
            table.map_cell(vc, cell)
            bins = cell.at_level(min(level, tree.node_level))
            return {bin_: bin_.idle for bin_ in bins if bin_.idle and wanted.allowed(bin_)}
    return {}
