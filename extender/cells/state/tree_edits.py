"""Adds cells to a tree and removes them while other cells of the tree are in use."""

from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import Cell
from policy.topology import PhysicalCell


def add_cell(
    table: AllocationTable, spec: PhysicalCell, parent: Cell, *, after: Cell | None
) -> Cell | None:
    """Add a cell below a parent, bad until observed; None if no order is left there."""
    tree = parent.chain
    supply = table.supplies[tree.name]
    with supply.changing(parent):
        cell = tree.insert(spec, parent, after=after)
    if cell is not None:
        supply.add(cell)
        for node in cell.at_level(tree.node_level):
            table.changes.record(node)
    return cell


def remove_cell(table: AllocationTable, cell: Cell) -> None:
    """Remove a cell that no gang uses."""
    assert cell.parent is not None
    tree = cell.chain
    supply = table.supplies[tree.name]
    for node in cell.at_level(tree.node_level):
        table.changes.record(node)
        table.mark(list(node.leaves()), is_bad=True)
    with supply.changing(cell.parent):
        supply.discard(cell)
        tree.remove(cell)
