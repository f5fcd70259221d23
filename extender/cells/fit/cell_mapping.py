"""Chooses the physical cell to which an unused preassigned cell is mapped.

Only cells whose mapping keeps all promises are considered (`Supply.highest_split`). Of these the
one wins that holds the most of the wanted members; then the one in the smallest free cell, so that
large free cells stay whole; then the one with the most idle leaves, that is, healthy and without
opportunistic gangs; then the one whose parent has the fewest idle leaves.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from extender.cells.budget import FREE_LOOKS, FREE_LOOKS_INSIDE, SearchBudget
from extender.cells.fit.demand import AllowedNodes
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import Cell
from policy.topology import ChainName

_Scored = tuple[tuple[int, ...], Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingDemand:
    """What a preassigned cell that is to be mapped must hold."""

    chain: ChainName
    level: int
    size: int
    """Leaf cells of a member; the cell must hold at least one."""
    want: int
    """The number of members that it should hold, if possible."""
    allowed: AllowedNodes
    budget: SearchBudget
    looks: int = FREE_LOOKS
    """The number of free cells of a level that are compared."""


def find_cell_to_map(table: AllocationTable, wanted: MappingDemand) -> Cell | None:
    """Find an unclaimed cell of the wanted level; None if none was found."""
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
        return best[1]  # it is idle as a whole and holds all wanted members
    best = _best(table, _scored(list(_on_roomy_nodes(table, wanted, highest)), wanted), best)
    if best is None and supply.free_count(wanted.level) > wanted.looks:
        wanted.budget.is_cut = True
    return best[1] if best is not None else None


def _inside(free: Cell, level: int) -> Iterable[Cell]:
    return (free,) if free.level == level else islice(free.at_level(level), FREE_LOOKS_INSIDE)


def _best(table: AllocationTable, scored: list[_Scored], known: _Scored | None) -> _Scored | None:
    """The safe cell with the lowest score, or `known`, which is safe, if its score is lower."""
    for score, cell in sorted(scored, key=lambda entry: entry[0]):
        if known is not None and known[0] <= score:
            return known
        if is_safe(table, cell):
            return score, cell
    return known


def _scored(cells: Sequence[tuple[int, Cell]], wanted: MappingDemand) -> list[_Scored]:
    """Cells that hold a member, with their scores; a low score is good.

    Each cell comes with the level of the free cell that contains it.
    """
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
    """Number of members of a size that an unclaimed cell holds now."""
    if cell.level <= cell.chain.node_level:
        return cell.idle // size if allowed.nodes is None or cell.node in allowed.nodes else 0
    return sum(node.idle // size for node in cell.at_level(cell.chain.node_level) if allowed(node))


def _on_roomy_nodes(
    table: AllocationTable, wanted: MappingDemand, highest: int
) -> Iterator[tuple[int, Cell]]:
    """Cells on nodes with room that the first looks at the free list may have missed."""
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
    # The ranking leaves out nodes with claims inside, but these may have unclaimed parts.
    named = (tree.by_node[name] for name in nodes if name in tree.by_node)
    roomy = [node for node in named if node.idle >= wanted.size and not node.enclosing_claim()]
    yield from sorted(roomy, key=lambda node: node.order)


def is_safe(table: AllocationTable, cell: Cell) -> bool:
    """True if mapping a cell breaks no promise.

    In a uniform chain the caller has checked this already by `highest_split`.
    """
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
