"""Nodes as a tree of places (zone, rack, node), with the cells built from them.

A branch caches its cells until a node below it changes. So after a change of one node only the
branches on its path are built again, each from the cached cells of its children.
"""

from collections import Counter
from dataclasses import dataclass

from policy.cluster.safety import Composition
from policy.submission import NodeName
from policy.topology import CellAddress, PhysicalCell

_NODE_LEVEL = 2


@dataclass(frozen=True, slots=True)
class Most:
    """The most children and the most leaf cells that a cell of a level has."""

    children: int = 0
    leaves: int = 0


@dataclass(slots=True, eq=False)
class _Made:
    """The cells of a branch, and what they are made of."""

    cell: PhysicalCell
    composition: Composition
    leaf_count: int
    most: tuple[Most, ...]
    """By level, from the leaves up to the branch itself."""


class Branch:
    """A place above the nodes, named by the last part of its address; or the root."""

    def __init__(self, address: str, *, level: int) -> None:
        self._address = address
        self._level = level
        self._below: dict[str, Branch | _Made] = {}
        self._made: _Made | None = None

    @property
    def is_used(self) -> bool:
        """Whether it has any node."""
        return bool(self._below)

    def put(self, path: tuple[str, ...], leaf_count: int) -> None:
        """Add a node."""
        self._made = None
        part, address = path[0], f"{self._address}/{path[0]}" if self._address else path[0]
        if len(path) == 1:
            self._below[part] = _make_node(address, NodeName(part), leaf_count)
            return
        branch = self._below.setdefault(part, Branch(address, level=self._level - 1))
        assert isinstance(branch, Branch)
        branch.put(path[1:], leaf_count)

    def take(self, path: tuple[str, ...]) -> None:
        """Remove a node, and branches without nodes."""
        self._made = None
        branch = self._below[path[0]]
        if isinstance(branch, Branch):
            branch.take(path[1:])
        if not isinstance(branch, Branch) or not branch.is_used:
            del self._below[path[0]]

    def children(self) -> tuple[PhysicalCell, ...]:
        """The cells below, by name."""
        return self._make().cell.children

    def composition(self) -> Composition:
        """What the cells below are made of."""
        return self._make().composition

    def most(self, level: int) -> Most:
        """The largest cell of a level below."""
        return self._make().most[level - 1]

    def _make(self) -> _Made:
        if self._made is None:
            below = [self._below[part] for part in sorted(self._below)]
            parts = [part._make() if isinstance(part, Branch) else part for part in below]
            self._made = _make_branch(self._address, self._level, parts)
        return self._made


def _make_branch(address: str, level: int, parts: list[_Made]) -> _Made:
    leaf_count = sum(part.leaf_count for part in parts)
    levels = zip(*(part.most for part in parts), strict=True)
    most = [Most(max(m.children for m in at), max(m.leaves for m in at)) for at in levels]
    return _Made(
        cell=PhysicalCell(
            address=CellAddress(address), level=level, children=tuple(part.cell for part in parts)
        ),
        composition=tuple(sorted(Counter(part.composition for part in parts).items())),
        leaf_count=leaf_count,
        most=(*most, Most(len(parts), leaf_count)),
    )


def _make_node(address: str, node: NodeName, leaf_count: int) -> _Made:
    leaves = tuple(
        PhysicalCell(address=CellAddress(f"{address}/{device}"), level=1, node=node, device=device)
        for device in range(leaf_count)
    )
    return _Made(
        cell=PhysicalCell(
            address=CellAddress(address), level=_NODE_LEVEL, children=leaves, node=node
        ),
        composition=(((), leaf_count),),
        leaf_count=leaf_count,
        most=(Most(0, 1), Most(leaf_count, leaf_count)),
    )
