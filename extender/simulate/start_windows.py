"""What can start now in each VC: searched on request, in slices, kept while nothing changes."""

from collections.abc import Callable
from typing import Final

from extender.cells.model import OPPORTUNISTIC
from extender.cluster.reader import ClusterReader
from extender.queue.variants.start_windows import StartWindow, WindowSearch
from extender.simulate.search_turns import SearchTurns
from policy.submission import DEFAULT_VC, LeafType, VcName
from policy.topology import ChainName, Topology
from service.memory import ExpiringMap
from service.tasks import in_slices

_KEPT_SECONDS: Final = 5.0
_MOST_KEPT: Final = 1000

_Question = tuple[VcName | None, LeafType, int]
"""A VC, or none for opportunistic gangs, a leaf type, and the version of the cluster."""


class StartWindows:
    """Finds windows; changes nothing."""

    def __init__(
        self,
        search: WindowSearch,
        *,
        cluster: ClusterReader,
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        """`now` is the planner's time, in seconds since 1970."""
        self._search = search
        self._cluster = cluster
        self._now = now
        self._turns = SearchTurns()
        self._known: ExpiringMap[_Question, StartWindow] = ExpiringMap(
            _MOST_KEPT, seconds=_KEPT_SECONDS, monotonic=monotonic
        )

    def leaf_types(self) -> list[LeafType]:
        """Return all leaf types."""
        topology = self._cluster.topology
        chains = topology.chains.values() if topology is not None else ()
        return sorted({chain.leaf_type for chain in chains})

    def is_promised(self, vc: VcName, leaf_type: LeafType) -> bool:
        """Tell whether a VC was promised leaf cells of a type."""
        topology = self._cluster.topology
        if topology is None or vc not in topology.vcs:
            return False
        chains = (promise.chain for promise in topology.vcs[vc].promises)
        return any(_is_of(topology, chain, leaf_type) for chain in chains)

    async def find(self, vc: VcName | None, leaf_type: LeafType) -> StartWindow:
        """Return what can start now as guaranteed gang of a VC; None: as opportunistic gang."""
        topology = self._cluster.topology
        if topology is None:
            return StartWindow(at=self._now())
        known = self._find_known(vc, leaf_type)
        if known is not None:
            return known
        async with self._turns.take():
            known = self._find_known(vc, leaf_type)  # another caller may have asked meanwhile
            return known or await self._search_now(vc, leaf_type, topology)

    def _find_known(self, vc: VcName | None, leaf_type: LeafType) -> StartWindow | None:
        return self._known.get((vc, leaf_type, self._cluster.version))

    async def _search_now(
        self, vc: VcName | None, leaf_type: LeafType, topology: Topology
    ) -> StartWindow:
        version = self._cluster.version
        steps = self._search.find(
            vc=next(iter(topology.vcs), DEFAULT_VC) if vc is None else vc,
            leaf_type=leaf_type,
            priority=OPPORTUNISTIC if vc is None else 0,
            topology=topology,
            now=self._now(),
        )
        found = await in_slices(steps)
        self._known[vc, leaf_type, version] = found
        return found


def _is_of(topology: Topology, chain: ChainName, leaf_type: LeafType) -> bool:
    return topology.chains[chain].leaf_type == leaf_type
