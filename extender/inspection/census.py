"""Counts of leaf cells and cells, for metrics and inspection.

A count visits every node, so it runs periodically and not on request. Leaf cells that belong to no
VC are counted under the empty name.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NoReturn

from extender.cells.model import NodeCell
from extender.cells.views.listings import Holders, Stepwise
from extender.cluster.reader import ClusterReader
from policy.submission import NodeName, PodUid
from policy.topology import PhysicalCell, Topology
from service.tasks import in_slices

_EVERY_SECONDS: Final = 10.0
_SLICE: Final = 200
"""Nodes per step: a step takes some milliseconds, in which no request is answered."""
NO_VC: Final = ""


class Census:
    """The latest counts."""

    def __init__(self, cluster: ClusterReader) -> None:
        self._cluster = cluster
        self._version = -1
        self._of_topology: Topology | None = None
        self._leaf_counts: dict[NodeName, int] = {}
        self.leaf_cells: Counter[tuple[str, str]] = Counter()
        """By VC and one of free, used, held (under a lease), bad, foreign."""
        self.cells: Counter[tuple[str, str, str]] = Counter()
        """Preassigned cells by VC, type and one of free, used."""
        self.gangs = 0
        self.leases = 0
        self.fragmentation = 0.0

    async def run(self) -> NoReturn:
        """Count periodically if the cluster has changed, until cancelled."""
        while True:
            await in_slices(self.count())
            await asyncio.sleep(_EVERY_SECONDS)

    def count(self) -> Stepwise[None]:
        """Count now, in steps; the next count includes changes meanwhile."""
        if self._version == self._cluster.version:
            return
        self._version = self._cluster.version
        nodes = yield from self._cluster.nodes_stepwise()
        yield from self._count_leaves(nodes)
        self._count_cells()
        self.gangs = self._cluster.members.gang_count
        self.leases = self._cluster.members.count_leases()

    def _count_leaves(self, nodes: Sequence[tuple[NodeCell, Holders]]) -> Stepwise[None]:
        leaf_counts = self._configured_leaf_counts()
        counted: Counter[tuple[str, str]] = Counter()
        scattered = seen = 0
        for index, (node, holders) in enumerate(nodes):
            if index % _SLICE == 0:
                yield
            total = leaf_counts.get(node.name, 0 if leaf_counts else node.leaf_count)
            idle = max(0, total - len(holders))
            bad = count_bad(node, idle=idle)
            seen += total
            counted[NO_VC, "free"] += idle - bad
            counted[NO_VC, "bad"] += bad
            scattered += idle - bad if idle - bad < total else 0
            counted.update(self._holder(held.member) for held in holders.values())
        counted[NO_VC, "bad"] += max(0, sum(leaf_counts.values()) - seen)
        free = counted[NO_VC, "free"]
        self.leaf_cells, self.fragmentation = counted, scattered / free if free else 0.0

    def _holder(self, member: PodUid | None) -> tuple[str, str]:
        if member is None:
            return NO_VC, "held"
        known = self._cluster.members.get(member)
        if known is None or known.is_foreign:
            return NO_VC, "foreign"
        return known.request.vc, "used"

    def _count_cells(self) -> None:
        self.cells = Counter()
        topology = self._cluster.topology
        if topology is None:
            return
        for vc in topology.vcs.values():
            for promise in vc.promises:
                cell_type = topology.chains[promise.chain].levels[promise.level - 1].cell_type
                self.cells[vc.name, cell_type, "free"] += promise.count
        for address, used_type in self._cluster.members.claimed_cells():
            owner = address.rsplit("/", 1)[0]
            # The VC may have been promised fewer such cells than it uses.
            if self.cells[owner, used_type, "free"] > 0:
                self.cells[owner, used_type, "used"] += 1
                self.cells[owner, used_type, "free"] -= 1

    def _configured_leaf_counts(self) -> dict[NodeName, int]:
        topology = self._cluster.topology
        if topology is not self._of_topology:
            self._of_topology = topology
            self._leaf_counts = _count_by_node(topology) if topology else {}
        return self._leaf_counts


def count_bad(node: NodeCell, *, idle: int) -> int:
    """Return how many of the leaf cells of a node that are not held cannot be used."""
    return min(idle, len(node.bad_leaf_cells)) if node.is_healthy else idle


def _count_by_node(topology: Topology) -> dict[NodeName, int]:
    leaves = (leaf for chain in topology.chains.values() for leaf in _leaves(chain.cells))
    return Counter(leaf.node for leaf in leaves if leaf.node is not None)


def _leaves(cells: Iterable[PhysicalCell]) -> Iterator[PhysicalCell]:
    for cell in cells:
        yield from _leaves(cell.children) if cell.children else (cell,)
