"""Cells, VCs and gangs as inspection shows them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from extender.cells.model import GangView
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang, slot_placement
from extender.cells.state.tree import Cell
from extender.cells.state.vcs import Vc, VirtualCell
from policy.submission import GangKey, LeafType, VcName
from policy.topology import CellAddress, CellTypeName, ChainName, PinnedCellId

FREE_PRIORITY = -2


class CellState(StrEnum):
    """HiveD's states of a cell."""

    FREE = "Free"
    USED = "Used"
    RESERVING = "Reserving"
    RESERVED = "Reserved"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    """A physical cell."""

    address: CellAddress
    cell_type: CellTypeName
    level: int
    is_node: bool
    leaf_type: LeafType | None
    state: CellState
    priority: int
    is_healthy: bool
    idle_count: int
    vc: VcName | None
    """The VC whose preassigned cell contains it; of an unclaimed leaf, the VC of its gang."""
    vc_cell: str | None
    """Virtual address of the preassigned cell that contains it."""
    pinned: PinnedCellId | None
    gang: GangKey | None
    """The gang that holds or reserves a leaf."""
    children: tuple["CellView", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VcCellView:
    """A preassigned cell of a VC."""

    address: str
    chain: ChainName
    cell_type: CellTypeName
    level: int
    pinned: PinnedCellId | None
    mapped_to: CellAddress | None
    is_healthy: bool
    is_doomed: bool
    """Not mapped, and no healthy unclaimed cell is left to which it could be mapped."""
    state: CellState
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VcView:
    """A VC."""

    name: VcName
    cells: tuple[VcCellView, ...]
    opportunistic: tuple[CellAddress, ...]
    """Leaves that opportunistic gangs of the VC hold."""


def view_gang(gang: PlacedGang) -> GangView:
    """The view of a gang."""
    return GangView(
        gang=gang.key,
        size=len(gang.request.gang_leaf_counts),
        members={slot.member: slot_placement(slot) for slot in gang.slots if slot.member},
        bound=tuple(slot.member for slot in gang.slots if slot.member and slot.is_bound),
        held=tuple(slot_placement(slot) for slot in gang.slots if not slot.member),
        vc=gang.request.vc,
        priority=gang.request.priority,
        state=gang.state(),
        is_guaranteed=gang.is_guaranteed,
        downgraded_by=gang.downgraded_by,
        waiting_members=tuple(gang.waiting_members),
        victims=tuple(victim.key for victim in gang.victims()),
    )


def view_cell(cell: Cell) -> CellView:
    """The view of a physical cell with its descendants."""
    return view_parent(cell, tuple(view_cell(child) for child in cell.children))


def view_parent(cell: Cell, children: tuple[CellView, ...]) -> CellView:
    """The view of a physical cell, given the views of its children."""
    rung = cell.chain.levels[cell.level - 1]
    claim = cell.enclosing_claim()
    gang = cell.holder or cell.reserver
    return CellView(
        address=cell.address,
        cell_type=rung.cell_type,
        level=cell.level,
        is_node=rung.is_node,
        leaf_type=cell.chain.leaf_type,
        state=_state(cell, children),
        priority=_priority(cell, children),
        is_healthy=cell.bad == 0,
        idle_count=cell.idle,
        vc=claim.vc if claim else (gang.request.vc if gang else None),
        vc_cell=claim.address if claim else None,
        pinned=cell.pinned,
        gang=gang.key if gang else None,
        children=children,
    )


def _state(cell: Cell, children: Sequence[CellView]) -> CellState:
    """Children with equal states give the parent theirs; otherwise the parent is used."""
    if cell.is_leaf:
        if cell.holder is None:
            return CellState.RESERVED if cell.reserver else CellState.FREE
        return CellState.RESERVING if cell.reserver else CellState.USED
    states = {child.state for child in children}
    if len(states) == 1:
        return next(iter(states))
    return CellState.USED if states - {CellState.FREE} else CellState.FREE


def _priority(cell: Cell, children: Sequence[CellView]) -> int:
    if not cell.is_leaf:
        return max((child.priority for child in children), default=FREE_PRIORITY)
    gang = cell.reserver or cell.holder
    return gang.priority if gang else FREE_PRIORITY


def view_virtual(
    table: AllocationTable,
    vc: Vc,
    cell: VirtualCell,
    view: CellView | None,
    doomed: Collection[int],
) -> VcCellView:
    """The view of a preassigned cell, given the view of the physical cell it is mapped to."""
    claim = vc.claims.get(cell.index)
    # Opportunistic gangs of other VCs may use its cells: this does not count as use by the VC.
    is_used = claim is not None and bool(claim.users)
    return VcCellView(
        address=f"{vc.name}/{cell.index}",
        chain=cell.chain,
        cell_type=table.trees[cell.chain].levels[cell.level - 1].cell_type,
        level=cell.level,
        pinned=cell.pinned,
        mapped_to=view.address if view else None,
        is_healthy=view.is_healthy if view else cell.index not in doomed,
        is_doomed=cell.index in doomed,
        state=view.state if view and is_used else CellState.FREE,
        priority=view.priority if view and is_used else FREE_PRIORITY,
    )


def doomed_cells(table: AllocationTable, vc: Vc) -> set[int]:
    """Indices of unmapped cells for which too few healthy unclaimed cells are left."""
    found: set[int] = set()
    for (chain, level), unmapped in sorted(vc.unmapped.items()):
        supply = table.supplies[chain]
        free = [
            cell
            for free_level in range(level, table.trees[chain].top_level + 1)
            for around in supply.free(free_level)
            for cell in around.at_level(level)
        ]
        healthy = sum(cell.bad == 0 for cell in free)
        found.update(unmapped[min(len(unmapped), healthy) :])
    return found
