"""Cells that join and leave a table while other cells of it are in use; each change can be undone.

Promises change with the cells: the functions that note their former state are here, too.
"""

from collections.abc import Sequence

from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import Cell, ChainTree
from extender.cells.state.vcs import Claim, Vc, count_promises, renumber
from policy.topology import ChainName, Level, PhysicalCell, VirtualCluster


def add_top(table: AllocationTable, tree: ChainTree, spec: PhysicalCell) -> None:
    """Add a top-level cell to a chain without promises; it is bad until observed."""
    assert not table.is_trying
    table.supplies[tree.name].add_top(tree.add(spec))


def add_cell(
    table: AllocationTable, spec: PhysicalCell, *, parent: Cell, after: Cell | None
) -> Cell | None:
    """Add a cell below a parent, bad until observed; None if no order is left there."""
    tree = parent.chain
    supply = table.supplies[tree.name]
    with supply.changing(parent):
        cell = tree.insert(spec, parent, after=after)
    if cell is not None:
        supply.add(cell)
        _record(table, cell)
        table.record_undo(lambda: _detach(table, cell))
    return cell


def remove_cell(table: AllocationTable, cell: Cell) -> None:
    """Remove a cell that no gang uses, while other cells of its tree are in use."""
    assert cell.parent is not None
    index = cell.parent.children.index(cell)
    for node in cell.at_level(cell.chain.node_level):
        table.mark(list(node.leaves()), is_bad=True)
    _detach(table, cell)
    table.record_undo(lambda: _attach(table, cell, index))


def _detach(table: AllocationTable, cell: Cell) -> None:
    assert cell.parent is not None
    supply = table.supplies[cell.chain.name]
    _record(table, cell)
    with supply.changing(cell.parent):
        supply.discard(cell)
        cell.chain.remove(cell)


def _attach(table: AllocationTable, cell: Cell, index: int) -> None:
    assert cell.parent is not None
    supply = table.supplies[cell.chain.name]
    with supply.changing(cell.parent):
        cell.chain.put_back(cell, index)
    supply.add(cell)
    _record(table, cell)


def _record(table: AllocationTable, cell: Cell) -> None:
    for node in cell.at_level(cell.chain.node_level):
        table.changes.record(node)


def set_levels(table: AllocationTable, name: ChainName, levels: tuple[Level, ...]) -> None:
    """Describe the levels of a chain by other largest cells."""
    tree, supply = table.trees[name], table.supplies[name]
    before, was_uniform = tree.levels, supply.is_uniform

    def undo() -> None:
        tree.levels, supply.is_uniform = before, was_uniform

    tree.levels = levels
    table.record_undo(undo)


# -- promises


def change_promises(table: AllocationTable, specs: Sequence[VirtualCluster]) -> list[Claim] | None:
    """Change what some VCs were promised; mapped cells stay mapped.

    Returns the claims that have another number now; None, with some VCs changed, if a VC uses more
    cells of a level than it is promised.
    """
    _note_counters(table)
    renumbered: list[Claim] = []
    for spec in specs:
        _note_numbers(table, table.vcs[spec.name])
        moved = renumber(table.vcs[spec.name], spec)
        if moved is None:
            return None
        renumbered += moved
    count_promises(table.vcs, table.trees, table.supplies)
    return renumbered


def _note_numbers(table: AllocationTable, vc: Vc) -> None:
    """Record how to number the cells of a VC as they are numbered now."""
    virtual, promised, unmapped = vc.virtual, vc.promised, vc.unmapped
    claims, shortfall = vc.claims, vc.shortfall

    def undo() -> None:
        vc.virtual, vc.promised, vc.unmapped = virtual, promised, unmapped
        vc.claims, vc.shortfall = claims, shortfall
        for index, claim in claims.items():
            claim.virtual = virtual[index]

    table.record_undo(undo)


def _note_counters(table: AllocationTable) -> None:
    """Record how to count the promises as they are counted now."""
    rankings = {name: dict(vc.rankings) for name, vc in table.vcs.items()}
    promised = {
        ranking: ranking.promised for of_vc in rankings.values() for ranking in of_vc.values()
    }
    unused = {chain: supply.unused_promises() for chain, supply in table.supplies.items()}

    def undo() -> None:
        for name, vc in table.vcs.items():
            vc.rankings = rankings[name]
        for ranking, count in promised.items():
            ranking.promised = count
        for chain, supply in table.supplies.items():
            supply.promise(unused[chain])

    table.record_undo(undo)
