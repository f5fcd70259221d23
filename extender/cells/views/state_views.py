"""Cells, VCs and gangs as inspection shows them. Nothing is decided here."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from extender.cells.model import GangView
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.state.placements import slot_placement
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
    """Whose preassigned cell is mapped here or around; of an opportunistic leaf, whose gang's."""
    vc_cell: str | None
    """Virtual address, if it lies in a preassigned cell."""
    pinned: PinnedCellId | None
    gang: GangKey | None
    """Who holds a leaf."""
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
    """Not mapped, and no healthy cell is left that it could be mapped to."""
    state: CellState
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VcView:
    """A VC."""

    name: VcName
    cells: tuple[VcCellView, ...]
    opportunistic: tuple[CellAddress, ...]
    """Leaves that its opportunistic gangs hold."""


def view_gang(gang: PlacedGang) -> GangView:
    """Show a gang."""
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
        asking=tuple(gang.waiting_members),
        victims=tuple(victim.key for victim in gang.victims()),
    )


def view_cell(cell: Cell) -> CellView:
    """Show a physical cell with all that is below it."""
    return view_parent(cell, tuple(view_cell(child) for child in cell.children))


def view_parent(cell: Cell, children: tuple[CellView, ...]) -> CellView:
    """Show a physical cell whose children are shown already."""
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
    """A parent is used as soon as one child is; it is anything else only if all children are."""
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
    shown: CellView | None,
    doomed: Collection[int],
) -> VcCellView:
    """Show a preassigned cell, and with it the physical cell that it is mapped to, if any."""
    claim = vc.claims.get(cell.index)
    # What opportunistic gangs of others do in its cells is not the VC's use of them.
    is_used = claim is not None and bool(claim.users)
    return VcCellView(
        address=f"{vc.name}/{cell.index}",
        chain=cell.chain,
        cell_type=table.trees[cell.chain].levels[cell.level - 1].cell_type,
        level=cell.level,
        pinned=cell.pinned,
        mapped_to=shown.address if shown else None,
        is_healthy=shown.is_healthy if shown else cell.index not in doomed,
        is_doomed=cell.index in doomed,
        state=shown.state if shown and is_used else CellState.FREE,
        priority=shown.priority if shown and is_used else FREE_PRIORITY,
    )


def doomed_cells(table: AllocationTable, vc: Vc) -> set[int]:
    """Unmapped cells, the last ones first, that healthy unclaimed cells are too few for."""
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
