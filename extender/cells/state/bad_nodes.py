"""Nodes with bad leaf cells, by chain: reasons name them without visiting all nodes."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from heapq import merge
from itertools import islice

from extender.cells.state.change_log import ChangeLog
from extender.cells.state.tree import Cell, ChainTree
from policy.submission import NodeName
from policy.topology import ChainName

_Entry = tuple[bool, NodeName]
"""Whether a node is bad for another reason than a quarantine, and its name."""


class BadNodes:
    """The nodes with bad leaves, those in quarantine first; it catches up when it is read."""

    def __init__(self, trees: Mapping[ChainName, ChainTree], changes: ChangeLog) -> None:
        self._trees = trees
        self._changes = changes
        self._read = -1
        self._known: dict[tuple[ChainName, NodeName], _Entry] = {}
        self._sorted: dict[ChainName, list[_Entry]] = {}

    def first(self, chains: Iterable[ChainName], *, most: int) -> list[tuple[NodeName, bool]]:
        """The first nodes, at most so many, and whether each is in quarantine."""
        self._catch_up()
        found = merge(*(self._sorted.get(chain, ()) for chain in chains))
        return [(node, not is_other) for is_other, node in islice(found, most)]

    def count(self, chains: Iterable[ChainName]) -> int:
        """The number of nodes with bad leaves."""
        self._catch_up()
        return sum(len(self._sorted.get(chain, ())) for chain in chains)

    def _catch_up(self) -> None:
        changed = self._changes.since(self._read) if self._read >= 0 else None
        self._read = self._changes.now
        if changed is None:
            self._rebuild()
            return
        cells = dict.fromkeys(cell for cell in changed if isinstance(cell, Cell))
        for cell in cells:
            if cell.node is not None:
                self._put(cell.chain.name, cell.node)

    def _rebuild(self) -> None:
        self._known = {
            (name, node): _entry(node, cell)
            for name, tree in self._trees.items()
            for node, cell in tree.by_node.items()
            if cell.bad
        }
        self._sorted = {}
        for (chain, _), entry in self._known.items():
            self._sorted.setdefault(chain, []).append(entry)
        for entries in self._sorted.values():
            entries.sort()

    def _put(self, chain: ChainName, node: NodeName) -> None:
        tree = self._trees.get(chain)
        cell = tree.by_node.get(node) if tree is not None else None
        now = _entry(node, cell) if cell is not None and cell.bad else None
        before = self._known.pop((chain, node), None)
        entries = self._sorted.setdefault(chain, [])
        if before is not None and before != now:
            del entries[bisect_left(entries, before)]
        if now is not None:
            self._known[chain, node] = now
            if before != now:
                insort(entries, now)


def _entry(node: NodeName, cell: Cell) -> _Entry:
    return not cell.is_quarantined, node
