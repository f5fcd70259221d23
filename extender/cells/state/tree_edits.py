"""Cells that join and leave a tree while others are in use. Private to `extender.cells`."""

from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.tree import Cell
from policy.topology import PhysicalCell


def add_cell(
    table: AllocationTable, spec: PhysicalCell, parent: Cell, *, after: Cell | None
) -> Cell | None:
    """A cell joins those below another one; bad until observed. None if no order is left there."""
    tree = parent.chain
    supply = table.supplies[tree.name]
    with supply.changing(parent):
        cell = tree.insert(spec, parent, after=after)
    if cell is not None:
        supply.take_in(cell)
        for node in cell.at_level(tree.node_level):
            table.changes.record(node)
    return cell


def remove_cell(table: AllocationTable, cell: Cell) -> None:
    """A cell that nobody uses leaves."""
    assert cell.parent is not None
    tree = cell.chain
    supply = table.supplies[tree.name]
    for node in cell.at_level(tree.node_level):
        table.changes.record(node)
        table.mark(list(node.leaves()), is_bad=True)
    with supply.changing(cell.parent):
        supply.take_out(cell)
        tree.remove(cell)
