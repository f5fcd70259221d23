"""Where a whole gang fits, if nothing else moves.

An opportunistic gang may have any idle leaves. A guaranteed one must lie in preassigned cells of
its VC: in mapped ones that have room, or in unused ones that are mapped for it. Quick ways are
tried first, and the closest together wins; the exhaustive search behind them makes it exact.
Mapping a cell to see how the gang fits happens inside `Table.what_if`, and so is undone.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from extender.cells.demand import Allowed, Demand, Spot
from extender.cells.exhaustive import search
from extender.cells.gathering import common_level, fill, gather
from extender.cells.leaves import LeafChooser
from extender.cells.model import Seat
from extender.cells.openings import find_opening
from extender.cells.ranking import Ranking
from extender.cells.table import Table
from extender.cells.tree import Cell, ChainTree
from extender.cells.vcs import Vc

_LOOKS = 32


def fit(table: Table, demand: Demand) -> list[Seat] | None:
    """Find seats for all members, in the order of their sizes; None if there are none."""
    spots = _fit(table, demand)
    if spots is None:
        return None
    chooser = LeafChooser()
    return [
        Seat(
            chain=demand.chain,
            leaves=tuple(leaf.address for leaf in chooser.take(spot.bin_, size)),
            claim=spot.claim.address if spot.claim else None,
        )
        for size, spot in zip(demand.sizes, spots, strict=True)
    ]


def _fit(table: Table, demand: Demand) -> list[Spot] | None:
    if demand.vc is None:
        return _fit_opportunistic(table, demand)
    if demand.pinned is not None:
        return _fit_in(table, demand.vc.pinned_rankings[demand.pinned], demand)
    if not _may_fit(table, demand, demand.vc):
        return None
    vc = demand.vc
    quick = _with_first(demand, lambda allowed: _fit_guaranteed(table, vc, demand, allowed))
    return quick or search(table, vc.rankings[demand.chain], demand)


def _fit_opportunistic(table: Table, demand: Demand) -> list[Spot] | None:
    """Where no VC has mapped anything, if possible: there it is in nobody's way for longest."""
    unclaimed, idle = table.unclaimed[demand.chain], table.idle[demand.chain]
    if unclaimed.total != idle.total:
        found = _with_first(demand, lambda allowed: _gather_spots(unclaimed, demand, allowed))
        if found is not None:
            return found
    return _fit_in(table, idle, demand)


def _fit_in(table: Table, ranking: Ranking, demand: Demand) -> list[Spot] | None:
    """Fit into the bins of one ranking; there is nothing to map."""
    if ranking.total < sum(demand.sizes):
        return None
    is_equal = demand.sizes[0] == demand.sizes[-1]
    if is_equal and gather(ranking, demand.sizes, demand.allowed) is None:
        return None  # gathering equal members is exact
    found = _with_first(demand, lambda allowed: _gather_spots(ranking, demand, allowed))
    return found or search(table, ranking, demand)


def _gather_spots(ranking: Ranking, demand: Demand, allowed: Allowed) -> list[Spot] | None:
    bins = gather(ranking, demand.sizes, allowed)
    return None if bins is None else [_spot(bin_, demand) for bin_ in bins]


def _spot(bin_: Cell, demand: Demand) -> Spot:
    claim = bin_.enclosing_claim() if demand.vc is not None else None
    return Spot(bin_, claim.cell if claim else None)


def _with_first(
    demand: Demand, attempt: Callable[[Allowed], list[Spot] | None]
) -> list[Spot] | None:
    """Try with all bins; if that leaves the member that asks out, with its own bins only."""
    found = attempt(demand.allowed)
    if found is None or demand.is_met_by(found):
        return found
    return attempt(demand.allowed_first)


# -- guaranteed


def _may_fit(table: Table, demand: Demand, vc: Vc) -> bool:
    """Quick bounds: what is idle, and what the VC has left, hold that many of the smallest."""
    tree, ranking = table.trees[demand.chain], vc.rankings[demand.chain]
    size, count, leaves = demand.sizes[-1], 0, ranking.total
    idle = table.idle[demand.chain]
    if idle.total < sum(demand.sizes) or idle.capacity(tree.root, size) < len(demand.sizes):
        return False
    for level in vc.unused_levels(demand.chain):
        unused = vc.unused(demand.chain, level)
        count += unused * _pristine(tree, level, size)
        leaves += unused * tree.levels[level - 1].leaf_count
    if leaves < sum(demand.sizes):
        return False
    if all(level >= tree.node_level for level in vc.unused_levels(demand.chain)):
        count = min(count, table.unclaimed[demand.chain].capacity(tree.root, size))
    return count + ranking.capacity(tree.root, size) >= len(demand.sizes)


def _pristine(tree: ChainTree, level: int, size: int) -> int:
    """How many members of a size an idle cell of a level holds."""
    inside = tree.levels[min(level, tree.node_level) - 1].leaf_count
    return tree.levels[level - 1].leaf_count // inside * (inside // size)


def _fit_guaranteed(table: Table, vc: Vc, demand: Demand, allowed: Allowed) -> list[Spot] | None:
    mapped = _gather_spots(vc.rankings[demand.chain], demand, allowed)
    if mapped is not None and _height(mapped) <= _lowest_height(table, demand):
        return mapped
    opened = _fit_in_openings(table, vc, demand, allowed)
    found = [spots for spots in (mapped, opened) if spots is not None]
    if found:
        return min(found, key=_height)
    return _fit_mixed(table, vc, demand, allowed)


def _height(spots: Sequence[Spot]) -> int:
    return common_level([spot.bin_ for spot in spots])


def _lowest_height(table: Table, demand: Demand) -> int:
    """The lowest level whose cells could hold the whole gang, not below node level."""
    tree = table.trees[demand.chain]
    for rung in tree.levels:
        if rung.level >= tree.node_level and rung.leaf_count >= sum(demand.sizes):
            return rung.level
    return tree.root.level


def _fit_in_openings(table: Table, vc: Vc, demand: Demand, allowed: Allowed) -> list[Spot] | None:
    """All members in unused cells of one level, the lowest that can."""
    if demand.sizes[0] != demand.sizes[-1]:
        return None
    tree, size, count = table.trees[demand.chain], demand.sizes[0], len(demand.sizes)
    for level in vc.unused_levels(demand.chain):
        if vc.unused(demand.chain, level) * _pristine(tree, level, size) < count:
            continue
        if level == tree.node_level and count > 1:
            found = _open_nodes(table, vc, demand, allowed)
            if found is not None:
                return found
        with table.what_if():
            found = _open_one_by_one(table, vc, demand, level=level, allowed=allowed)
        if found is not None:
            return found
    return None


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
    spots: list[Spot] = []
    size, count = demand.sizes[0], len(demand.sizes)
    while len(spots) < count and vc.unused(demand.chain, level):
        want = count - len(spots)
        cell = find_opening(table, demand.chain, level=level, size=size, want=want, allowed=allowed)
        if cell is None:
            return None
        table.map_cell(vc, cell)
        ranking = vc.rankings[demand.chain]
        bins = fill(ranking, cell, size=size, count=want, allowed=allowed)
        spots += [Spot(bin_, cell) for bin_ in bins]
    return spots if len(spots) == count else None


def _fit_mixed(table: Table, vc: Vc, demand: Demand, allowed: Allowed) -> list[Spot] | None:
    """One member after the other: in mapped cells while they have room, then in unused ones."""
    spots: list[Spot] = []
    used: dict[Cell, int] = {}
    with table.what_if():
        for index, size in enumerate(demand.sizes):
            narrowed = replace(demand, sizes=demand.sizes[index:], allowed=allowed)
            bin_ = _open_bin(vc.rankings[demand.chain], narrowed, used, spots)
            if bin_ is None:
                bin_ = _new_bin(table, vc, narrowed)
            if bin_ is None:
                return None
            used[bin_] = used.get(bin_, 0) + size
            spots.append(_spot(bin_, demand))
        return spots


def _open_bin(
    ranking: Ranking, demand: Demand, used: dict[Cell, int], spots: Sequence[Spot]
) -> Cell | None:
    """A mapped bin with room for the next member: near the others, then tight."""
    size = demand.sizes[0]
    looks = islice(ranking.bins(least=size), _LOOKS + len(used))
    fitting = [
        bin_
        for bin_ in looks
        if demand.allowed(bin_) and ranking.room(bin_) - used.get(bin_, 0) >= size
    ]

    def distance(bin_: Cell) -> tuple[int, int, int]:
        near = common_level([bin_, *(spot.bin_ for spot in spots[-1:])])
        return near, ranking.room(bin_) - used.get(bin_, 0), bin_.order

    return min(fitting, key=distance, default=None)


def _new_bin(table: Table, vc: Vc, demand: Demand) -> Cell | None:
    """Map an unused cell for the next member: the smallest that holds all the rest, if any."""
    tree, size = table.trees[demand.chain], demand.sizes[0]
    levels = [
        level
        for level in vc.unused_levels(demand.chain)
        if tree.levels[level - 1].leaf_count >= size
    ]
    rest = sum(demand.sizes)
    enough = [level for level in levels if tree.levels[level - 1].leaf_count >= rest]
    for level in (*enough, *(level for level in reversed(levels) if level not in enough)):
        cell = find_opening(
            table,
            demand.chain,
            level=level,
            size=size,
            want=len(demand.sizes),
            allowed=demand.allowed,
        )
        if cell is not None:
            table.map_cell(vc, cell)
            bins = fill(vc.rankings[demand.chain], cell, size=size, count=1, allowed=demand.allowed)
            return bins[0]
    return None
