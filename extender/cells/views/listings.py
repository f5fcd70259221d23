"""Lists all cells, VCs, gangs and nodes, step by step: the caller may pause wherever these yield.

The state may change during a pause. Each item (a node, a gang, a preassigned cell) is consistent in
itself; two items may show the state at different times.
"""

from collections.abc import Generator, Mapping
from typing import NamedTuple, TypeVar

from extender.cells.model import GangView, NodeCell
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import slot_placement
from extender.cells.state.tree import Cell
from extender.cells.views import state_views
from policy.submission import GangKey, NodeName, PodUid, VcName
from policy.topology import CellAddress

T = TypeVar("T")
Stepwise = Generator[None, None, T]
"""Work that yields after each step and returns its result in the end."""


class Holder(NamedTuple):
    """What holds a leaf cell: a member of a gang, or a gang for a member that is not there yet."""

    gang: GangKey
    member: PodUid | None


Holders = Mapping[int, Holder]
"""The leaf cells of a node that are held, by number."""


def run_to_end(steps: Stepwise[T]) -> T:
    """Do all steps without a pause and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found


def list_cells(table: AllocationTable) -> Stepwise[list[state_views.CellView]]:
    """All physical cells, as trees."""
    found = []
    for _, tree in sorted(table.trees.items()):
        for top in tuple(tree.root.children):
            found.append((yield from _list_cell(top)))
    return found


def _list_cell(cell: Cell) -> Stepwise[state_views.CellView]:
    if cell.is_leaf or cell.chain.levels[cell.level - 1].is_node:
        yield
        return state_views.view_cell(cell)
    children = []
    for child in tuple(cell.children):
        children.append((yield from _list_cell(child)))
    return state_views.view_parent(cell, tuple(children))


def list_gangs(table: AllocationTable) -> Stepwise[list[GangView]]:
    """All gangs that hold or reserve leaf cells, by key."""
    found = []
    for _, gang in sorted(table.gangs.items()):
        yield
        found.append(state_views.view_gang(gang))
    return found


def list_vcs(table: AllocationTable) -> Stepwise[dict[VcName, state_views.VcView]]:
    """All VCs with their preassigned cells."""
    borrowed: dict[VcName, list[CellAddress]] = {}
    for _, gang in sorted(table.gangs.items()):
        yield
        if not gang.is_guaranteed:
            leaves = [leaf.address for slot in gang.slots for leaf in slot.leaves]
            borrowed.setdefault(gang.request.vc, []).extend(leaves)
    found = {}
    for name, vc in sorted(table.vcs.items()):
        doomed, cells = state_views.doomed_cells(table, vc), []
        for cell in vc.virtual:
            claim = vc.claims.get(cell.index)
            view = (yield from _list_cell(claim.cell)) if claim else None
            cells.append(state_views.view_virtual(table, vc, cell, view, doomed))
        found[name] = state_views.VcView(
            name=name, cells=tuple(cells), opportunistic=tuple(borrowed.get(name, ()))
        )
    return found


def list_nodes(
    table: AllocationTable, known: Mapping[NodeName, NodeCell]
) -> Stepwise[list[tuple[NodeCell, Holders]]]:
    """All nodes with the holders of their leaf cells, by name."""
    holders: dict[NodeName, dict[int, Holder]] = {}
    for gang in tuple(table.gangs.values()):
        yield
        for slot in [slot for slot in gang.slots if not slot.is_reserved]:
            placement = slot_placement(slot)
            there = holders.setdefault(placement.node, {})
            there.update(dict.fromkeys(placement.leaf_cells, Holder(gang.key, slot.member)))
    return [
        (node, dict(sorted(holders.get(name, {}).items()))) for name, node in sorted(known.items())
    ]
