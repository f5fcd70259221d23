"""Which physical cell an unused preassigned cell is mapped to.

Safe first (`Supply.highest_split`), then the smallest free cell that can serve, so that large ones
stay whole; then the one with the most idle leaves: healthy and without opportunistic gangs; then
the one whose surroundings are most used.
"""

from collections.abc import Iterator
from itertools import islice

from extender.cells.demand import Allowed
from extender.cells.table import Table
from extender.cells.tree import Cell
from policy.topology import ChainName

_LOOKS = 64
"""Free cells of a level that are compared. More would cost time without placing better."""
_LOOKS_INSIDE = 4


def find_opening(
    table: Table, chain: ChainName, *, level: int, size: int, want: int, allowed: Allowed
) -> Cell | None:
    """Find an unclaimed cell of a level for a preassigned cell, with room for a member of a size.

    `want` is for how many members there should be room, if possible.
    """
    best: tuple[tuple[int, ...], Cell] | None = None
    seen_level = level
    for cell in _candidates(table, chain, level=level, size=size, allowed=allowed):
        if best is not None and _free_level(table, cell) > seen_level and best[0][0] == 0:
            break
        seen_level = max(seen_level, _free_level(table, cell))
        room = capacity(table, cell, size=size, allowed=allowed)
        if room == 0 or not _is_safe(table, cell):
            continue
        score = _score(table, cell, missing=max(0, want - room))
        if best is None or score < best[0]:
            best = (score, cell)
    return best[1] if best else None


def _free_level(table: Table, cell: Cell) -> int:
    return table.supplies[cell.chain.name].free_cell_around(cell).level


def capacity(table: Table, cell: Cell, *, size: int, allowed: Allowed) -> int:
    """How many members of a size an unclaimed cell could hold now."""
    if cell.level <= cell.chain.node_level:
        return cell.idle // size if allowed(cell) else 0
    return sum(node.idle // size for node in cell.at_level(cell.chain.node_level) if allowed(node))


def _score(table: Table, cell: Cell, *, missing: int) -> tuple[int, ...]:
    around = cell.parent.idle if cell.parent is not None else 0
    return missing, _free_level(table, cell), cell.leaf_count - cell.idle, around, cell.order


def _candidates(
    table: Table, chain: ChainName, *, level: int, size: int, allowed: Allowed
) -> Iterator[Cell]:
    """A bounded number of unclaimed cells of a level, the most promising first."""
    supply = table.supplies[chain]
    highest = supply.highest_split(level)
    for free_level in range(level, highest + 1):
        for free in islice(supply.free(free_level), _LOOKS):
            yield from islice(free.at_level(level), _LOOKS_INSIDE)
    # Beyond the first looks: nodes that are known to have room, or that the gang is limited to.
    for bin_ in _roomy_nodes(table, chain, size=size, allowed=allowed):
        inside = bin_.at_level(level) if level < bin_.level else (bin_.ancestor(level),)
        for cell in inside:
            if cell.is_unclaimed() and supply.free_cell_around(cell).level <= highest:
                yield cell


def _roomy_nodes(table: Table, chain: ChainName, *, size: int, allowed: Allowed) -> Iterator[Cell]:
    ranking, by_node = table.unclaimed[chain], table.trees[chain].by_node
    if allowed.nodes is None or len(allowed.nodes) >= len(by_node):
        yield from islice(filter(allowed, ranking.largest_bins(least=size)), _LOOKS)
        return
    named = (by_node[name] for name in allowed.nodes if name in by_node)
    # Not from the ranking: a node with claims inside may have unclaimed parts.
    roomy = [node for node in named if node.idle >= size and not node.enclosing_claim()]
    yield from sorted(roomy, key=lambda node: node.order)[:_LOOKS]


def _is_safe(table: Table, cell: Cell) -> bool:
    """Where cells differ in children, counting is not enough: try it."""
    supply = table.supplies[cell.chain.name]
    if supply.is_uniform:
        return True
    supply.unused[cell.level] -= 1
    supply.split(cell)
    try:
        return supply.is_safe()
    finally:
        supply.merge(cell)
        supply.unused[cell.level] += 1
