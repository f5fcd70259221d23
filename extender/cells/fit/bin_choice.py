"""Chooses bins for the members of a gang, close to each other.

The rule is the lowest common ancestor of all bins, then best fit. `choose_bins` visits the levels
from the bins upwards and takes the cell with the least capacity that holds all members; inside it
the members use as few children as possible. A `Ranking` answers both questions, so no search is
needed. Members of different sizes are packed best fit, the largest first.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from extender.cells.budget import CELL_TRIES
from extender.cells.fit.demand import ANY_NODE, AllowedNodes
from extender.cells.fit.packing import pack
from extender.cells.state.ranking import Ranking
from extender.cells.state.tree import Cell

Bins = list[Cell]


def choose_bins(ranking: Ranking, sizes: Sequence[int], allowed: AllowedNodes) -> Bins | None:
    """Choose a bin for each member, in the order of `sizes`, which descend.

    Most gangs may use most nodes, so the first few entries of the ranking usually suffice. If they
    do not, the allowed nodes are ranked by themselves.
    """
    if not _may_hold(ranking, sizes):
        return None
    if allowed.nodes is None:
        return _choose_bins(ranking, sizes, allowed)
    found = _choose_bins(ranking, sizes, allowed) if len(allowed.nodes) > CELL_TRIES else None
    if found is not None:
        return found
    few = ranking.only(allowed.nodes)
    return _choose_bins(few, sizes, ANY_NODE) if _may_hold(few, sizes) else None


def _may_hold(ranking: Ranking, sizes: Sequence[int]) -> bool:
    """Cheap bound: enough leaves in all, and enough capacity for the members of each size."""
    if ranking.total < sum(sizes) or not has_usable_room(ranking, sizes):
        return False
    root = ranking.root
    return all(ranking.capacity(root, size) >= n for size, n in members_at_least(sizes).items())


def has_usable_room(ranking: Ranking, sizes: Sequence[int]) -> bool:
    """False if for some size the bins that hold such a member have too few leaves in all."""
    wanted = 0
    for size, count in Counter(sizes).items():
        wanted += size * count
        if ranking.usable(size) < wanted:
            return False
    return True


def members_at_least(sizes: Sequence[int]) -> dict[int, int]:
    """By size: the number of members of this size or larger; `sizes` and the keys descend."""
    if sizes[0] == sizes[-1]:
        return {sizes[0]: len(sizes)}
    return {size: number + 1 for number, size in enumerate(sizes)}


def _choose_bins(ranking: Ranking, sizes: Sequence[int], allowed: AllowedNodes) -> Bins | None:
    if sizes[0] != sizes[-1]:
        return _choose_bins_for_unequal(ranking, sizes, allowed)
    size, count = sizes[0], len(sizes)
    one = _first(ranking.bins(least=size * count), allowed)
    if one is not None:
        return [one] * count
    if count == 1:
        return None
    for level in range(2, ranking.root.level + 1):
        for cell in islice(ranking.cells(level, size=size, least=count), CELL_TRIES):
            found = choose_bins_in(ranking, cell, size=size, count=count, allowed=allowed)
            if len(found) == count:
                return found
    return None


def _first(bins: Iterator[Cell], allowed: AllowedNodes) -> Cell | None:
    if allowed.nodes is None:
        return next(bins, None)
    return next((bin_ for bin_ in islice(bins, CELL_TRIES) if allowed(bin_)), None)


def choose_bins_in(
    ranking: Ranking, cell: Cell, *, size: int, count: int, allowed: AllowedNodes
) -> list[Cell]:
    """Choose bins in a cell for up to `count` members, using as few children as possible."""
    if cell in ranking:
        return [cell] * min(count, ranking.room(cell) // size) if allowed(cell) else []
    if cell is ranking.root:
        return _choose_bins_in_chain(ranking, size=size, count=count, allowed=allowed)
    found: list[Cell] = []
    left = [(ranking.capacity(child, size), child.order, child) for child in cell.children]
    left = sorted(entry for entry in left if entry[0])
    while len(found) < count and left:
        need = count - len(found)
        tight = next((entry for entry in left if entry[0] >= need), None)
        tight = tight or max(left, key=lambda entry: (entry[0], -entry[1]))
        left.remove(tight)
        child = tight[2]
        found += choose_bins_in(ranking, child, size=size, count=need, allowed=allowed)
    return found


def _choose_bins_in_chain(
    ranking: Ranking, *, size: int, count: int, allowed: AllowedNodes
) -> list[Cell]:
    """Like `choose_bins_in` for a whole chain, whose children are too many to be sorted."""
    top = ranking.root.level - 1
    found: list[Cell] = []
    used: dict[Cell, None] = {}
    is_flat = top <= ranking.root.chain.node_level
    bins = ranking.largest_bins(least=size) if is_flat else iter(())
    roomy = chain(ranking.largest(top, size=size), (bin_ for bin_ in bins if bin_.level == top))
    most = None if allowed.nodes is None else count + CELL_TRIES
    for roomiest in islice(roomy, most):
        for cell in (*_tightest(ranking, top, size=size, least=count - len(found)), roomiest):
            need = count - len(found)
            if cell not in used and need:
                used[cell] = None
                found += choose_bins_in(ranking, cell, size=size, count=need, allowed=allowed)
        if len(found) == count:
            break
    return found


def _tightest(ranking: Ranking, level: int, *, size: int, least: int) -> Iterator[Cell]:
    """Up to two cells and two bins of a level, the tightest that hold `least` members."""
    yield from islice(ranking.cells(level, size=size, least=least), 2)
    if level <= ranking.root.chain.node_level:
        bins = ranking.bins(least=size * least)
        yield from islice((bin_ for bin_ in bins if bin_.level == level), 2)


def _choose_bins_for_unequal(
    ranking: Ranking, sizes: Sequence[int], allowed: AllowedNodes
) -> Bins | None:
    bins = useful_bins(ranking, sizes, allowed)
    for level in range(1, ranking.root.level + 1):
        groups: dict[Cell, list[Cell]] = {}
        for bin_ in bins:
            if bin_.level <= level:
                groups.setdefault(bin_.ancestor(level), []).append(bin_)
        fitting = [
            (sum(map(ranking.room, inside)), cell.order, inside)
            for cell, inside in groups.items()
            if sum(map(ranking.room, inside)) >= sum(sizes)
        ]
        for _, _, inside in sorted(fitting, key=lambda entry: entry[:2])[:CELL_TRIES]:
            packed = pack({bin_: ranking.room(bin_) for bin_ in inside}, sizes)
            if packed is not None:
                return packed
    return None


def useful_bins(ranking: Ranking, sizes: Sequence[int], allowed: AllowedNodes) -> list[Cell]:
    """The bins that best fit may choose: for each size the tightest and the roomiest ones."""
    found: dict[Cell, None] = {}
    for size in dict.fromkeys(sizes):
        for bins in (ranking.bins(least=size), ranking.largest_bins(least=size)):
            most = None if allowed.nodes is None else len(sizes) + CELL_TRIES
            offered = (bin_ for bin_ in islice(bins, most) if allowed(bin_))
            found.update(dict.fromkeys(islice(offered, len(sizes))))
    return sorted(found, key=lambda bin_: bin_.order)


def common_level(bins: Sequence[Cell]) -> int:
    """Level of the lowest common ancestor of some bins; the root's level if there is none."""
    common = bins[0]
    for bin_ in bins[1:]:
        if bin_ is common:
            continue
        while common.level < bin_.level and common.parent is not None:
            common = common.parent
        other = bin_.ancestor(common.level)
        while other is not common and common.parent is not None and other.parent is not None:
            common, other = common.parent, other.parent
    return common.level
