"""Views of the engine, shared by all who look.

A view of a large cluster costs about a second: it is made in slices, so that verbs need not wait,
once for all who ask meanwhile. While the cluster does not change it is not made again; while it
does, one that took long is good for some times as long as that: whoever looks all the time takes a
share of the processor, not all of it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from extender.cells.model import GangView, NodeCell
from extender.cells.views.listings import Holders, Stepwise
from extender.cells.views.state_views import CellView, VcView
from extender.cluster.cluster import Cluster
from policy.submission import GangKey, VcName
from policy.topology import Topology
from service.tasks import in_slices

T = TypeVar("T")

_REST: Final = 4.0
"""How many times longer than its making a view is good for, if that took long."""
_DEAR_SECONDS: Final = 0.1


class Status(NamedTuple):
    """Physical and virtual cells, and what they are built from."""

    cells: Sequence[CellView]
    vcs: Mapping[VcName, VcView]
    topology: Topology | None


class _View(Generic[T]):
    """One view, as it was made last."""

    def __init__(self, cluster: Cluster, make: Callable[[], Stepwise[T]]) -> None:
        self._cluster = cluster
        self._make = make
        self._turn = asyncio.Lock()
        self._made: list[T] = []
        self._version = -1
        self._topology: Topology | None = None
        self._good_until = 0.0

    async def get(self) -> T:
        async with self._turn:
            while not self._is_good():
                await self._renew()
            return self._made[0]

    def _is_good(self) -> bool:
        """A view of other cells is never good: what is shown together must fit together."""
        if not self._made or self._topology is not self._cluster.topology:
            return False
        is_rested = asyncio.get_running_loop().time() >= self._good_until
        return self._version == self._cluster.version or not is_rested

    async def _renew(self) -> None:
        began = asyncio.get_running_loop().time()
        self._version, self._topology = self._cluster.version, self._cluster.topology
        self._made = [await in_slices(self._make())]
        now = asyncio.get_running_loop().time()
        is_dear = now - began > _DEAR_SECONDS
        self._good_until = now + _REST * (now - began) if is_dear else now


class Snapshots:
    """The engine's views, as of now or of a moment ago."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

        def view(make: Callable[[], Stepwise[T]]) -> _View[T]:
            return _View(cluster, make)

        self._gangs = view(lambda: cluster.engine.gangs_stepwise())
        self._cells = view(lambda: cluster.engine.cells_stepwise())
        self._vcs = view(lambda: cluster.engine.vcs_stepwise())
        self._nodes = view(lambda: cluster.engine.nodes_stepwise())

    async def gangs(self) -> Mapping[GangKey, GangView]:
        """All gangs, by key."""
        return {gang.gang: gang for gang in await self._gangs.get()}

    async def cells(self) -> Sequence[CellView]:
        """All physical cells, as trees."""
        return await self._cells.get()

    async def vcs(self) -> Mapping[VcName, VcView]:
        """All VCs."""
        return await self._vcs.get()

    async def status(self) -> Status:
        """Cells, VCs and the topology that both are of."""
        while True:
            topology = self._cluster.topology
            cells, vcs = await self.cells(), await self.vcs()
            if topology is self._cluster.topology:
                return Status(cells, vcs, topology)

    async def nodes(self) -> Sequence[tuple[NodeCell, Holders]]:
        """All nodes, with the holders of their leaf cells."""
        return await self._nodes.get()
