"""What would let a waiting gang start earlier: asked on request, in slices, kept for a moment."""

from collections.abc import Callable
from typing import Final

from extender.cells.model import MemberRequest
from extender.cluster.reader import ClusterReader
from extender.queue.queued_gang import QueuedGang
from extender.queue.variants.model import Options, Variants
from extender.queue.variants.search import VariantSearch
from extender.queue.variants.trials import Assume, Trials
from extender.simulate.open_vcs import OpenVcs
from extender.simulate.search_turns import SearchTurns
from kube.read.managed_pod import ManagedPod
from policy.submission import GangKey, LeafType, PodUid, VcName
from policy.topology import ChainName, Topology
from service.memory import ExpiringMap
from service.tasks import in_slices

_KEPT_SECONDS: Final = 5.0
_MOST_KEPT: Final = 1000
_MOST_MEMBERS: Final = 128
"""One plan of a larger gang would block others for too long, and a search makes dozens."""


class GangVariants:
    """Finds the variants of gangs; changes nothing."""

    def __init__(
        self,
        trials: Trials,
        *,
        cluster: ClusterReader,
        find: Callable[[GangKey], QueuedGang | None],
        pod_of: Callable[[PodUid], ManagedPod | None],
        assume: Assume,
        open_vcs: OpenVcs,
        monotonic: Callable[[], float],
    ) -> None:
        """`find` returns the gangs that the planner knows, `pod_of` their pods."""
        self._search = VariantSearch(trials)
        self._cluster = cluster
        self._find = find
        self._pod_of = pod_of
        self._assume = assume
        self._open_vcs = open_vcs
        self._turns = SearchTurns()
        self._known: ExpiringMap[GangKey, Variants] = ExpiringMap(
            _MOST_KEPT, seconds=_KEPT_SECONDS, monotonic=monotonic
        )

    async def of_waiting(self, key: GangKey) -> Variants | None:
        """Return the variants of a gang that waits for cells; None if it does not."""
        if self._known.get(key) is None:
            async with self._turns.take():
                await self._refresh(key)
        return self._known.get(key)

    async def _refresh(self, key: GangKey) -> None:
        """Search the variants of a gang, unless another caller has done so meanwhile."""
        gang = self._find(key)
        if gang is None or not _waits_for_cells(gang) or self._known.get(key) is not None:
            return
        pod = self._pod_of(gang.first.uid)
        if pod is not None:
            self._known[key] = await self._find_for(gang, pod, self._assume)

    async def of_simulated(
        self, gang: QueuedGang, pod: ManagedPod, assume: Assume
    ) -> Variants | None:
        """Return the variants of a gang that does not exist; `assume` makes its pods known."""
        async with self._turns.take():
            return await self._find_for(gang, pod, assume) if _waits_for_cells(gang) else None

    async def _find_for(self, gang: QueuedGang, pod: ManagedPod, assume: Assume) -> Variants:
        counts = gang.leaf_counts()
        vcs = await self._open_vcs.of_gang(pod, leaf_count=sum(counts), members=len(counts))
        options = Options(leaf_types=self._leaf_types(gang), vcs=tuple(vcs))
        return await in_slices(self._search.find(gang, options, assume))

    def _leaf_types(self, gang: QueuedGang) -> tuple[LeafType, ...]:
        """Return the other leaf types of the cells that a gang may use."""
        topology, request = self._cluster.topology, gang.first.request
        if topology is None or request.leaf_type is None:
            return ()
        is_guaranteed = self._cluster.domain(request) is not None
        found = {
            chain.leaf_type
            for name, chain in topology.chains.items()
            if not is_guaranteed or _is_promised(topology, request.vc, name)
        }
        return tuple(sorted(found - {request.leaf_type}))


def is_varied(request: MemberRequest) -> bool:
    """Tell whether variants of a gang are searched."""
    return len(request.gang_leaf_counts) <= _MOST_MEMBERS


def _waits_for_cells(gang: QueuedGang) -> bool:
    """Tell whether all members that are needed exist, agree, and have no place."""
    if not 0 < len(gang.pods) <= _MOST_MEMBERS:
        return False
    is_new = gang.is_complete and not gang.has_begun and not gang.victims
    return is_new and gang.disagreement() is None


def _is_promised(topology: Topology, vc: VcName, chain: ChainName) -> bool:
    return any(promise.chain == chain for promise in topology.vcs[vc].promises)
