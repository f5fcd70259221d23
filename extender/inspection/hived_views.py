"""The JSON of HiveD's inspection API, with the same fields and values as HiveD's.

Dashboards of HiveD's users (https://github.com/microsoft/hivedscheduler) keep working. It is built
from views of the engine, which do not change, so that a thread can build it.
"""

from collections.abc import Iterator, Mapping, Sequence

from extender.cells.model import GangState, GangView
from extender.cells.views.state_views import FREE_PRIORITY, CellState, CellView, VcCellView, VcView
from extender.inspection.json_views import JsonObject
from policy.placement import Placement
from policy.submission import VcName
from policy.topology import CellAddress, Chain, ChainName, PhysicalCell, Topology

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


def show_group(gang: GangView, *, name: str, leaves: VirtualLeaves | None) -> JsonObject:
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
        "physicalPlacement": physical,
        "virtualPlacement": virtual,
        "allocatedPods": list(gang.members),
        "preemptingPods": list(gang.waiting_members),
    }
    if gang.downgraded_by is not None:
        status["lazyPreemptionStatus"] = {"preemptor": gang.downgraded_by.name}
    kept = {key: value for key, value in status.items() if value not in ({}, [])}
    return {"metadata": {"name": name}, "status": kept}


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

    # -- physical

    def _show(self, cell: CellView) -> JsonObject:
        shape = _show_physical(cell)
        if cell.children:
            shape["cellChildren"] = [self._show(child) for child in cell.children]
        if cell.vc is not None:
            shape["vc"] = cell.vc
            virtual = self._virtual.get((cell.vc, cell.vc_cell or ""))
            if virtual is not None and virtual.mapped_to == cell.address:
                shape["virtualCell"] = _show_virtual(virtual)
        return shape

    # -- virtual

    def _show_preassigned(self, cell: VcCellView) -> JsonObject:
        chain = self._chains[cell.chain]
        physical = self._by_address.get(cell.mapped_to) if cell.mapped_to else None
        shape = {"leafCellType": chain.leaf_type, **_show_virtual(cell)}
        if chain.levels[cell.level - 1].is_node:
            shape["isNodeLevel"] = True
        if physical is not None:
            shape["physicalCell"] = _show_physical(physical)
        children = list(self._children(chain, cell.address, cell.level, 0, physical, cell))
        return shape | ({"cellChildren": children} if children else {})

    def _children(
        self,
        chain: Chain,
        parent: str,
        level: int,
        parent_index: int,
        physical: CellView | None,
        root: VcCellView,
    ) -> Iterator[JsonObject]:
        """Yield the cells below a virtual one: as it is mapped, or as the chain says."""
        rung = chain.levels[level - 2] if level > 1 else None
        if rung is None:
            return
        count = len(physical.children) if physical else chain.levels[level - 1].child_count
        for place in range(count):
            index = parent_index * count + place
            address = f"{parent}/{index}"
            below = physical.children[place] if physical else None
            shape = _show_below(address, rung.cell_type, below, root)
            if rung.is_node:
                shape["isNodeLevel"] = True
            children = list(self._children(chain, address, level - 1, index, below, root))
            yield shape | ({"cellChildren": children} if children else {})

    def _show_borrowed(self, address: CellAddress) -> JsonObject:
        """Show a leaf cell that an opportunistic gang of the VC borrows: an extra cell."""
        leaf = self._by_address[address]
        return {
            "cellType": leaf.cell_type,
            "cellAddress": f"{address}-opp",
            "cellState": CellState.USED,
            "cellHealthiness": _health(leaf.is_healthy),
            "cellPriority": -1,
            "physicalCell": _show_physical(leaf),
        }


def _walk(cell: CellView) -> Iterator[CellView]:
    yield cell
    for child in cell.children:
        yield from _walk(child)


def _show_physical(cell: CellView) -> JsonObject:
    shape: JsonObject = {
        "cellType": cell.cell_type,
        "cellAddress": cell.address,
        "cellState": cell.state,
        "cellHealthiness": _health(cell.is_healthy),
        "cellPriority": cell.priority,
    }
    return shape | ({"isNodeLevel": True} if cell.is_node else {})


def _show_virtual(cell: VcCellView) -> JsonObject:
    return {
        "cellType": cell.cell_type,
        "cellAddress": cell.address,
        "cellState": cell.state,
        "cellHealthiness": _health(cell.is_healthy),
        "cellPriority": cell.priority,
    }


def _show_below(
    address: str, cell_type: str, physical: CellView | None, root: VcCellView
) -> JsonObject:
    """Show a cell below a virtual one; opportunistic gangs do not count as the VC's use."""
    is_used = physical is not None and physical.priority >= 0
    shape: JsonObject = {
        "cellType": cell_type,
        "cellAddress": address,
        "cellState": physical.state if physical and is_used else CellState.FREE,
        "cellHealthiness": _health(physical.is_healthy if physical else root.is_healthy),
        "cellPriority": physical.priority if physical and is_used else FREE_PRIORITY,
    }
    return shape | ({"physicalCell": _show_physical(physical)} if physical else {})


def _health(is_healthy: bool) -> str:
    return "Healthy" if is_healthy else "Bad"
