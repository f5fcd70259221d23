"""HiveD's physical cells: trees with inferred children, and addresses as HiveD assigns them.

A cell's own part of the address is the one in the document, or a number: that of a top cell is its
place in the list, that of child i is (number of the parent) * (children per cell) + i. The number
depends on places only, also if the parent has an address; below a node it starts from 0, so that
the leaf cells of a node count its devices.

    top cell 7 of 2 racks of 2 nodes:   7 → 7/14 → 7/14/node-a → 7/14/node-a/0
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from policy.cluster.document import MAX_CELLS
from policy.cluster.fields import Path, entries_of, text_of
from policy.cluster.hived_types import CellTypes
from policy.documents.models import items_of
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.submission import LeafType, NodeName
from policy.topology import CellAddress, Chain, ChainName, Level, PhysicalCell, PinnedCellId
from policy.wording import count_of, join_path, quote

CELLS_PATH: Final = ("physicalCluster", "physicalCells")
LEAF: Final = 1
MAX_ADDRESS_CHARS: Final = 512
MAX_DEVICE: Final = 2**31 - 1
MAX_WARNINGS: Final = 20
_DEVICE_DIGITS: Final = 10


@dataclass(slots=True)
class PhysicalCells:
    """The chains, as far as they could be built."""

    chains: dict[ChainName, Chain] = field(default_factory=dict)
    tops: dict[str, None] = field(default_factory=dict)
    """The types of all top cells, also of those with problems."""
    pinned: dict[PinnedCellId, Path] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)


def read_cells(cluster: Mapping[str, Plain], types: CellTypes) -> PhysicalCells:
    """Build the trees of a `physicalCluster`, up to MAX_CELLS."""
    found = PhysicalCells()
    tops: list[tuple[int, Mapping[str, Plain], tuple[Level, ...]]] = []
    for place, entry in entries_of(cluster, "physicalCells"):
        levels = _levels_of(entry, path=(*CELLS_PATH, place), types=types, found=found)
        if levels is not None:
            tops.append((place, entry, levels))
    if sum(_size(levels) for _, _, levels in tops) > MAX_CELLS:
        what = f"contain more than {MAX_CELLS} cells in all; that is the limit"
        found.problems.append(Problem(join_path(CELLS_PATH), what))
        return found
    readers: dict[str, _ChainReader] = {}
    for place, entry, levels in tops:
        name = levels[-1].cell_type
        readers.setdefault(name, _ChainReader(levels, found)).add(entry, place)
    _check_devices(readers, found)
    found.chains = {chain.name: chain for chain in (reader.chain() for reader in readers.values())}
    return found


def _levels_of(
    entry: Mapping[str, Plain], *, path: Path, types: CellTypes, found: PhysicalCells
) -> tuple[Level, ...] | None:
    name = text_of(entry, "cellType")
    if name is None:
        return None
    where = join_path((*path, "cellType"))
    if not name:
        found.problems.append(Problem(where, "is required, because this is a top cell"))
        return None
    found.tops[name] = None
    if not types.is_type(name):
        found.problems.append(Problem(where, f"{quote(name)} is not one of cellTypes"))
        return None
    return types.ladder(name)


def _size(levels: tuple[Level, ...]) -> int:
    """Count the cells of a top cell, itself included."""
    size = 1
    for level in levels[1:]:
        size = 1 + level.child_count * size
    return size


@dataclass(slots=True)
class _Place:
    """The place of a cell, from which its address and its problems are made."""

    path: Path
    """Of the cell, or of the nearest one above that is in the document."""
    level: int
    index: int
    """Its default address."""
    above: str = ""
    node: NodeName | None = None
    is_repeated: bool = False
    """Whether it is in a cell that is given twice, which is reported once."""


@dataclass(slots=True)
class _NodeCell:
    """A node's part in one chain."""

    path: Path
    devices: dict[int, None] = field(default_factory=dict)


@dataclass(slots=True)
class _ChainReader:
    """Builds the top cells of one chain."""

    levels: tuple[Level, ...]
    found: PhysicalCells
    cells: list[PhysicalCell] = field(default_factory=list)
    nodes: dict[NodeName, _NodeCell] = field(default_factory=dict)
    _tops: dict[str, Path] = field(default_factory=dict)

    def add(self, entry: Mapping[str, Plain], place: int) -> None:
        """Build a top cell."""
        top = _Place((*CELLS_PATH, place), level=len(self.levels), index=place)
        self.cells.append(self._cell(entry, top, self._tops))

    def chain(self) -> Chain:
        return Chain(
            name=ChainName(self.levels[-1].cell_type),
            leaf_type=LeafType(self.levels[0].cell_type),
            levels=self.levels,
            cells=tuple(self.cells),
        )

    def _cell(
        self, entry: Mapping[str, Plain], at: _Place, siblings: dict[str, Path]
    ) -> PhysicalCell:
        level = self.levels[at.level - 1]
        own = text_of(entry, "cellAddress") or str(at.index)
        address = f"{at.above}/{own}" if at.above else own
        if level.is_node:
            self._enter_node(entry, own, at)
        device = self._device(own, at) if at.level == 1 else None
        self._check_address(own, address, at, siblings)
        self._check_type(entry, at)
        return PhysicalCell(
            address=CellAddress(address),
            level=at.level,
            children=self._children(entry, at, address) if at.level > 1 else (),
            node=at.node,
            device=device,
            pinned=self._pinned(entry, at),
        )

    def _children(
        self, entry: Mapping[str, Plain], at: _Place, address: str
    ) -> tuple[PhysicalCell, ...]:
        count = self.levels[at.level - 1].child_count
        listed = items_of(entry, "cellChildren")
        if not listed and at.node is not None:
            self._add_devices(at)
            return self._inferred(at.level, index=at.index, address=address, node=at.node)
        if listed and len(listed) != count:
            name = quote(self.levels[at.level - 1].cell_type)
            message = f"lists {count_of(len(listed), 'cell')}, but a {name} has {count}"
            self._problem(at, message, key="cellChildren")
        siblings: dict[str, Path] = {}
        return tuple(
            self._child(listed, at, address, place=place, siblings=siblings)
            for place in range(count)
        )

    def _child(
        self,
        listed: list[Plain],
        parent: _Place,
        address: str,
        *,
        place: int,
        siblings: dict[str, Path],
    ) -> PhysicalCell:
        is_listed = place < len(listed)
        entry = listed[place] if is_listed else None
        below = _Place(
            path=(*parent.path, "cellChildren", place) if is_listed else parent.path,
            level=parent.level - 1,
            index=parent.index * self.levels[parent.level - 1].child_count + place,
            above=address,
            node=parent.node,
            is_repeated=parent.is_repeated,
        )
        return self._cell(entry if isinstance(entry, dict) else {}, below, siblings)

    def _inferred(
        self, level: int, *, index: int, address: str, node: NodeName
    ) -> tuple[PhysicalCell, ...]:
        """Build the children inside a node that the document does not list: most of a cluster."""
        count = self.levels[level - 1].child_count
        return tuple(
            PhysicalCell(
                address=CellAddress(f"{address}/{place}"),
                level=level - 1,
                children=self._inferred(
                    level - 1, index=place, address=f"{address}/{place}", node=node
                )
                if level > LEAF + 1
                else (),
                node=node,
                device=place if level == LEAF + 1 else None,
            )
            for place in range(index * count, index * count + count)
        )

    def _add_devices(self, at: _Place) -> None:
        """Note the devices below a cell whose children are not listed."""
        assert at.node is not None
        leaves = self.levels[at.level - 1].leaf_count
        for device in range(at.index * leaves, (at.index + 1) * leaves):
            self._add_device(device, at)

    def _check_address(self, own: str, address: str, at: _Place, siblings: dict[str, Path]) -> None:
        first = siblings.setdefault(own, at.path)
        if "/" in own:
            self._problem(at, f"{quote(own)} must not contain a /", key="cellAddress")
        elif len(address) > MAX_ADDRESS_CHARS:
            message = f"the whole address has more than {MAX_ADDRESS_CHARS} characters"
            self._problem(at, message, key="cellAddress")
        # Nodes and devices that are given twice have messages of their own.
        elif first is not at.path and at.level > LEAF and not at.is_repeated:
            message = f"{quote(address)} is the address of {join_path(first)} already"
            self._problem(at, message, key="cellAddress")
            at.is_repeated = True

    def _enter_node(self, entry: Mapping[str, Plain], own: str, at: _Place) -> None:
        """Note the node; the cells below are numbered from 0."""
        at.node, at.index = NodeName(own), 0
        if not text_of(entry, "cellAddress") and len(self.found.warnings) < MAX_WARNINGS:
            message = (
                f"a node level cell without cellAddress is assumed to be the node {quote(own)}"
            )
            self.found.warnings.append(Problem(join_path(at.path), message))
        first = self.nodes.setdefault(at.node, _NodeCell(at.path))
        if first.path is not at.path and not at.is_repeated:
            message = f"the node {quote(own)} is {join_path(first.path)} already"
            self._problem(at, message, key="cellAddress")
            at.is_repeated = True

    def _device(self, own: str, at: _Place) -> int | None:
        is_number = own.isascii() and own.isdigit() and len(own) <= _DEVICE_DIGITS
        if not is_number or int(own) > MAX_DEVICE:
            message = f"{quote(own)} is not the index of a device, a whole number from 0"
            self._problem(at, message, key="cellAddress")
            return None
        self._add_device(int(own), at)
        return int(own)

    def _add_device(self, device: int, at: _Place) -> None:
        assert at.node is not None  # a ladder without a node level has been refused
        devices = self.nodes[at.node].devices
        if device in devices and not at.is_repeated:
            message = f"the device {device} of node {quote(at.node)} is given twice"
            self._problem(at, message, key="cellAddress")
        devices[device] = None

    def _check_type(self, entry: Mapping[str, Plain], at: _Place) -> None:
        name, expected = text_of(entry, "cellType"), self.levels[at.level - 1].cell_type
        if name and name != expected:
            message = f"must be {quote(expected)} by the type of the cell above, not {quote(name)}"
            self._problem(at, message, key="cellType")
        if at.level == LEAF and items_of(entry, "cellChildren"):
            self._problem(at, f"a leaf cell ({quote(expected)}) has none", key="cellChildren")

    def _pinned(self, entry: Mapping[str, Plain], at: _Place) -> PinnedCellId | None:
        text = text_of(entry, "pinnedCellId")
        if not text:
            return None
        pinned = PinnedCellId(text)
        first = self.found.pinned.setdefault(pinned, at.path)
        if first is not at.path:
            message = f"{quote(pinned)} is the id of {join_path(first)} already"
            self._problem(at, message, key="pinnedCellId")
        return pinned

    def _problem(self, at: _Place, message: str, *, key: str) -> None:
        self.found.problems.append(Problem(join_path((*at.path, key)), message))


def _check_devices(readers: Mapping[str, _ChainReader], found: PhysicalCells) -> None:
    """Report devices in two chains: a node may be in several chains, a device in one."""
    owners: dict[tuple[str, NodeName], dict[int, Path]] = {}
    for reader in readers.values():
        for name, node in reader.nodes.items():
            taken = owners.setdefault((reader.levels[0].cell_type, name), {})
            shared = next((device for device in node.devices if device in taken), None)
            if shared is not None:
                what = f"the device {shared} of node {quote(name)} is in {join_path(taken[shared])}"
                found.problems.append(Problem(join_path(node.path), f"{what} already"))
            taken |= dict.fromkeys(node.devices, node.path)
