"""The JSON of HiveD's inspection API, with the same fields and values as HiveD's.

Dashboards of HiveD's users (https://github.com/microsoft/hivedscheduler) keep working. It is built
from views of the engine, which do not change, so that a thread can build it.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from extender.cells.model import GangState, GangView
from extender.cells.views.state_views import FREE_PRIORITY, CellState, CellView, VcCellView, VcView
from extender.inspection.json_views import JsonObject, if_any
from policy.placement import Placement
from policy.submission import GangKey, VcName
from policy.topology import CellAddress, Chain, ChainName, PhysicalCell, Topology
from policy.wording import moment

_STATES = {
    GangState.ALLOCATED: "Allocated",
    GangState.PREEMPTING: "Preempting",
    GangState.BEING_PREEMPTED: "BeingPreempted",
}


class VirtualLeaves:
    """The virtual address of every leaf cell within a preassigned cell.

    Below a preassigned cell, cells are numbered level by level: child `i` of number `n` among cells
    with `c` children each is number `n * c + i`.
    """

    def __init__(self, topology: Topology) -> None:
        self._chains = topology.chains
        self._ways: dict[tuple[str, int, ChainName], tuple[int, ...]] = {}
        """By node, device and chain: the index among its siblings on each level, from the top."""
        for chain in topology.chains.values():
            for cell in chain.cells:
                self._note(chain.name, cell, ())

    def _note(self, chain: ChainName, cell: PhysicalCell, way: tuple[int, ...]) -> None:
        if cell.node is not None and cell.device is not None:
            self._ways[cell.node, cell.device, chain] = way
        for place, child in enumerate(cell.children):
            self._note(chain, child, (*way, place))

    def addresses(self, placement: Placement) -> list[str]:
        """Return the addresses of the leaf cells of a placement in a cell of its VC."""
        chain = self._chains.get(placement.chain or ChainName(""))
        if chain is None or placement.vc_cell is None:
            return []
        types = [level.cell_type for level in chain.levels]
        if placement.vc_cell_type not in types:
            return []
        level = types.index(placement.vc_cell_type) + 1
        ways = [self._ways.get((placement.node, leaf, chain.name)) for leaf in placement.leaf_cells]
        return [_address(placement.vc_cell, chain, level, way) for way in ways if way is not None]


def _address(root: str, chain: Chain, level: int, way: tuple[int, ...]) -> str:
    parts, index = [root], 0
    for below in range(level - 1, 0, -1):
        index = index * chain.levels[below].child_count + way[-below]
        parts.append(str(index))
    return "/".join(parts)


def show_group(
    gang: GangView,
    *,
    name: str,
    leaves: VirtualLeaves | None,
    downgraded_at: datetime | None = None,
) -> JsonObject:
    """Show a gang as an AffinityGroup; empty fields are left out, as HiveD does."""
    physical: dict[str, list[int]] = {}
    virtual: dict[str, list[str]] = {}
    for place in (*gang.members.values(), *gang.held):
        physical.setdefault(place.node, []).extend(place.leaf_cells)
        if place.vc_cell is not None and gang.is_guaranteed and leaves is not None:
            virtual.setdefault(place.vc_cell, []).extend(leaves.addresses(place))
    status: JsonObject = {
        "vc": gang.vc,
        "priority": gang.priority,
        "state": _STATES[gang.state],
        **if_any("physicalPlacement", physical),
        **if_any("virtualPlacement", virtual),
        **if_any("allocatedPods", list(gang.members)),
        **if_any("preemptingPods", list(gang.waiting_members)),
        **if_any("lazyPreemptionStatus", _show_downgrade(gang.downgraded_by, downgraded_at)),
    }
    return {"metadata": {"name": name}, "status": status}


def _show_downgrade(by: GangKey | None, at: datetime | None) -> JsonObject | None:
    """Show which gang took the guarantee of another one, and when."""
    if by is None:
        return None
    when = moment(at) if at is not None else None
    return {"preemptor": by.name, **if_any("preemptionTime", when)}


class ClusterStatus:
    """Physical and virtual cells; each shows the other that it is mapped to."""

    def __init__(
        self,
        cells: Sequence[CellView],
        vcs: Mapping[VcName, VcView],
        topology: Topology | None,
    ) -> None:
        self._tops = cells
        self._vcs = vcs
        self._chains: Mapping[ChainName, Chain] = topology.chains if topology else {}
        self._by_address = {cell.address: cell for top in cells for cell in _walk(top)}
        self._virtual = {(vc.name, cell.address): cell for vc in vcs.values() for cell in vc.cells}

    def whole(self) -> JsonObject:
        """Show the physical cluster and all virtual clusters."""
        return {"physicalCluster": self.physical(), "virtualClusters": self.virtual()}

    def physical(self) -> list[JsonObject]:
        """Show all top-level cells and their children."""
        return [{"leafCellType": top.leaf_type, **self._show(top)} for top in self._tops]

    def virtual(self) -> dict[str, list[JsonObject]]:
        """Show the cells of each VC."""
        return {name: self.of_vc(name) for name in self._vcs}

    def of_vc(self, name: VcName) -> list[JsonObject]:
        """Show the cells of one VC. Raises KeyError if there is no such VC."""
        vc = self._vcs[name]
        own = [self._show_preassigned(cell) for cell in vc.cells]
        return [*own, *(self._show_borrowed(address) for address in vc.opportunistic)]

    def _show(self, cell: CellView) -> JsonObject:
        shown = _show_physical(cell)
        if cell.children:
            shown["cellChildren"] = [self._show(child) for child in cell.children]
        if cell.vc is not None:
            shown["vc"] = cell.vc
            virtual = self._virtual.get((cell.vc, cell.vc_cell or ""))
            if virtual is not None and virtual.mapped_to == cell.address:
                shown["virtualCell"] = _show_cell(virtual)
        return shown

    def _show_preassigned(self, cell: VcCellView) -> JsonObject:
        chain = self._chains[cell.chain]
        physical = self._by_address.get(cell.mapped_to) if cell.mapped_to else None
        children = self._children(
            cell, parent=cell.address, level=cell.level, index=0, physical=physical
        )
        return {
            "leafCellType": chain.leaf_type,
            **_show_cell(cell, is_node=chain.levels[cell.level - 1].is_node),
            **if_any("physicalCell", _show_physical(physical) if physical else None),
            **if_any("cellChildren", list(children)),
        }

    def _children(
        self, root: VcCellView, *, parent: str, level: int, index: int, physical: CellView | None
    ) -> Iterator[JsonObject]:
        """Yield the cells below a virtual one: as it is mapped, or as the chain says.

        Opportunistic gangs do not count as the VC's use.
        """
        if level == 1:
            return
        levels = self._chains[root.chain].levels
        rung = levels[level - 2]
        count = len(physical.children) if physical else levels[level - 1].child_count
        for place in range(count):
            below = physical.children[place] if physical else None
            used = below if below and below.priority >= 0 else None
            number = index * count + place
            address = f"{parent}/{number}"
            children = self._children(
                root, parent=address, level=level - 1, index=number, physical=below
            )
            yield {
                "cellType": rung.cell_type,
                "cellAddress": address,
                "cellState": used.state if used else CellState.FREE,
                "cellHealthiness": _health((below or root).is_healthy),
                "cellPriority": used.priority if used else FREE_PRIORITY,
                **if_any("physicalCell", _show_physical(below) if below else None),
                **if_any("isNodeLevel", rung.is_node),
                **if_any("cellChildren", list(children)),
            }

    def _show_borrowed(self, address: CellAddress) -> JsonObject:
        """Show a leaf cell that an opportunistic gang of the VC borrows: an extra cell."""
        leaf = self._by_address[address]
        return _show_cell(leaf) | {
            "cellAddress": f"{address}-opp",
            "cellState": CellState.USED,
            "cellPriority": -1,
            "physicalCell": _show_physical(leaf),
        }


def _walk(cell: CellView) -> Iterator[CellView]:
    yield cell
    for child in cell.children:
        yield from _walk(child)


def _show_physical(cell: CellView) -> JsonObject:
    return _show_cell(cell, is_node=cell.is_node)


def _show_cell(cell: CellView | VcCellView, *, is_node: bool = False) -> JsonObject:
    return {
        "cellType": cell.cell_type,
        "cellAddress": cell.address,
        "cellState": cell.state,
        "cellHealthiness": _health(cell.is_healthy),
        "cellPriority": cell.priority,
        **if_any("isNodeLevel", is_node),
    }


def _health(is_healthy: bool) -> str:
    return "Healthy" if is_healthy else "Bad"
