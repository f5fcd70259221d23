"""Views of the cluster that all inspection requests share.

A view of a large cluster takes about a second. It is built in slices, so that verbs are answered in
between, and once for all requests that arrive meanwhile. A view stays valid while the cluster does
not change. If the cluster changes, a view that was slow to build is used for some more seconds, so
that constant inspection takes only a share of the processor.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from extender.cells.views.listings import Stepwise
from extender.cells.views.state_views import CellView, VcView
from extender.cluster.reader import ClusterReader
from policy.submission import VcName
from policy.topology import Topology
from service.tasks import in_slices

T = TypeVar("T")

_REUSE_FACTOR: Final = 4.0
"""A slow view is used for this multiple of the time that it took to build."""
_SLOW_SECONDS: Final = 0.1


class Status(NamedTuple):
    """Physical and virtual cells, and the topology that they belong to."""

    cells: Sequence[CellView]
    vcs: Mapping[VcName, VcView]
    topology: Topology | None


class _View(Generic[T]):
    """One view: a call returns it as it was built last, or builds it."""

    def __init__(self, cluster: ClusterReader, build: Callable[[], Stepwise[T]]) -> None:
        self._cluster = cluster
        self._build = build
        self._turn = asyncio.Lock()
        self._built: list[T] = []
        self._version = -1
        self._topology: Topology | None = None
        self._valid_until = 0.0

    async def __call__(self) -> T:
        async with self._turn:
            while not self._is_valid():
                await self._rebuild()
            return self._built[0]

    def _is_valid(self) -> bool:
        """Tell whether the view may be used; never after a change of the topology."""
        if not self._built or self._topology is not self._cluster.topology:
            return False
        is_recent = asyncio.get_running_loop().time() < self._valid_until
        return self._version == self._cluster.version or is_recent

    async def _rebuild(self) -> None:
        began = asyncio.get_running_loop().time()
        self._version, self._topology = self._cluster.version, self._cluster.topology
        self._built = [await in_slices(self._build())]
        now = asyncio.get_running_loop().time()
        is_slow = now - began > _SLOW_SECONDS
        self._valid_until = now + _REUSE_FACTOR * (now - began) if is_slow else now


class Snapshots:
    """The views, each as of now or of a moment ago."""

    def __init__(self, cluster: ClusterReader) -> None:
        self._cluster = cluster
        self.gangs = _View(cluster, cluster.gangs_stepwise)
        self.cells = _View(cluster, cluster.cells_stepwise)
        self.vcs = _View(cluster, cluster.vcs_stepwise)
        self.nodes = _View(cluster, cluster.nodes_stepwise)

    async def status(self) -> Status:
        """Return cells and VCs of the same topology."""
        while True:
            topology = self._cluster.topology
            cells, vcs = await self.cells(), await self.vcs()
            if topology is self._cluster.topology:
                return Status(cells, vcs, topology)
