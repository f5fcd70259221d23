"""Which physical cell an unused preassigned cell is mapped to.

Safe first (`Supply.highest_split`), then the smallest free cell that can serve, so that large ones
stay whole; then the one with the most idle leaves: healthy and without opportunistic gangs; then
the one whose surroundings are most used.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from extender.cells.budget import FREE_LOOKS, FREE_LOOKS_INSIDE, Budget
from extender.cells.fit.demand import AllowedNodes
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import Cell
from policy.topology import ChainName

_Scored = tuple[tuple[int, ...], Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingDemand:
    """What an unused preassigned cell is wanted for."""

    chain: ChainName
    level: int
    size: int
    """Leaf cells of a member; there must be room for one."""
    want: int
    """For how many members there should be room, if possible."""
    allowed: AllowedNodes
    budget: Budget
    looks: int = FREE_LOOKS
    """How many cells are compared."""


def find_cell_to_map(table: AllocationTable, wanted: MappingDemand) -> Cell | None:
    """Find an unclaimed cell of a level for a preassigned cell."""
    supply = table.supplies[wanted.chain]
    highest = supply.highest_split(wanted.level)
    best: _Scored | None = None
    for free_level in range(wanted.level, highest + 1):
        around = islice(supply.free(free_level), wanted.looks)
        cells = [(free_level, c) for cell in around for c in _inside(cell, wanted.level)]
        best = _best(table, _scored(cells, wanted), best)
        if best is not None and best[0][0] == 0:
            break
    if best is not None and best[0][0] == best[0][2] == 0:
        return best[1]  # idle as a whole, and enough
    best = _best(table, _scored(list(_beyond(table, wanted, highest)), wanted), best)
    if best is None and supply.free_count(wanted.level) > wanted.looks:
        wanted.budget.is_cut = True
    return best[1] if best is not None else None


def _inside(free: Cell, level: int) -> Iterable[Cell]:
    return (free,) if free.level == level else islice(free.at_level(level), FREE_LOOKS_INSIDE)


def _best(table: AllocationTable, scored: list[_Scored], known: _Scored | None) -> _Scored | None:
    """The safe cell with the lowest score; the known one is safe."""
    for score, cell in sorted(scored, key=lambda entry: entry[0]):
        if known is not None and known[0] <= score:
            return known
        if is_safe(table, cell):
            return score, cell
    return known


def _scored(cells: Sequence[tuple[int, Cell]], wanted: MappingDemand) -> list[_Scored]:
    """Cells with room, with the level of their free cell, and how little each suits."""
    wanted.budget.spend(len(cells))
    found: list[_Scored] = []
    for free_level, cell in cells:
        idle = cell.idle
        room = _capacity(cell, wanted.size, wanted.allowed) if idle >= wanted.size else 0
        if room:
            around = cell.parent.idle if cell.parent is not None else 0
            missing = max(0, wanted.want - room)
            score = (missing, free_level, cell.leaf_count - idle, around, cell.order)
            found.append((score, cell))
    return found


def _capacity(cell: Cell, size: int, allowed: AllowedNodes) -> int:
    """How many members of a size an unclaimed cell could hold now."""
    if cell.level <= cell.chain.node_level:
        return cell.idle // size if allowed.nodes is None or cell.node in allowed.nodes else 0
    return sum(node.idle // size for node in cell.at_level(cell.chain.node_level) if allowed(node))


def _beyond(
    table: AllocationTable, wanted: MappingDemand, highest: int
) -> Iterator[tuple[int, Cell]]:
    """Beyond the first looks: nodes that are known to have room, or that the gang is limited to."""
    supply = table.supplies[wanted.chain]
    for node in islice(_roomy_nodes(table, wanted), wanted.looks):
        is_inside = wanted.level < node.level
        inside = node.at_level(wanted.level) if is_inside else (node.ancestor(wanted.level),)
        for cell in inside:
            free_level = supply.free_cell_around(cell).level
            if cell.is_unclaimed() and free_level <= highest:
                yield free_level, cell


def _roomy_nodes(table: AllocationTable, wanted: MappingDemand) -> Iterator[Cell]:
    ranking, nodes = table.unclaimed[wanted.chain], wanted.allowed.nodes
    if nodes is None:
        yield from ranking.largest_bins(least=wanted.size)
        return
    tree = table.trees[wanted.chain]
    if wanted.level >= tree.node_level:
        first = islice(ranking.largest_bins(least=wanted.size), wanted.looks)
        offered = [node for node in first if wanted.allowed(node)]
        yield from offered or ranking.only(nodes).largest_bins(least=wanted.size)
        return
    # Not from the ranking: a node with claims inside may have unclaimed parts.
    named = (tree.by_node[name] for name in nodes if name in tree.by_node)
    roomy = [node for node in named if node.idle >= wanted.size and not node.enclosing_claim()]
    yield from sorted(roomy, key=lambda node: node.order)


def is_safe(table: AllocationTable, cell: Cell) -> bool:
    """True if mapping a cell breaks no promise; where cells are alike, `highest_split` says it."""
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
