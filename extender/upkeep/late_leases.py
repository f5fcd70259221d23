"""Leases for members that a controller creates only after others are Ready, after a take-over.

Their places were leased with the gang, by the leader before: no pod tells where. They are leased
again as near as possible to the members that run, before any verb is answered, so that no other
gang can take the cells. The planner renews such leases as long as members are missing.
"""

import logging
from dataclasses import replace

from extender.cells.model import NO_MEMBER, MemberRequest, Place
from extender.cluster.cluster import Cluster
from extender.cluster.journal import DecisionContext
from extender.feeds.pod_feed import PodSink
from extender.feeds.pod_needs import NodesFor
from extender.feeds.requests import members_left
from kube.read.managed_pod import ManagedPod
from policy.submission import GangKey
from service.clock import Clock
from state.log.records import RowKind

logger = logging.getLogger(__name__)


class LateLeases:
    """Leases cells for late members of the gangs that run, once, during recovery."""

    def __init__(
        self, *, cluster: Cluster, pods: PodSink, nodes_for: NodesFor, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._nodes_for = nodes_for
        self._clock = clock

    def grant(self) -> None:
        """Lease a place for every late member that does not exist yet, as far as there is room."""
        begun: dict[GangKey, ManagedPod] = {}
        for pod in sorted(self._pods, key=lambda pod: (pod.namespace, pod.name)):
            if pod.gang.late and pod.node is not None:
                begun.setdefault(pod.gang.key, pod)
        for gang, pod in begun.items():
            missing = self._missing(gang)
            granted = sum(self._lease(gang, pod, leaf_count) for leaf_count in missing)
            if missing:
                counts = {"gang": str(gang), "missing": len(missing), "leased": granted}
                logger.info("leased cells for members that are created later", extra=counts)

    def _missing(self, gang: GangKey) -> list[int]:
        """Return the leaf cells of late members that do not exist, as the planner counts them."""
        pods = self._pods.of_gang(gang)
        first = max(pods, key=lambda pod: len(pod.gang.late))
        assert first.gang.size is not None, "gangs with late members state their size"
        finished = self._pods.finished.of_gang(first)
        left = members_left(pods, size=first.gang.size, finished=finished)
        there = len(pods) + len(self._pods.helpers.of_gang(gang))
        return [count for count in left.missing_late(there) if count]

    def _lease(self, gang: GangKey, pod: ManagedPod, leaf_count: int) -> bool:
        """Lease a place on a node that would do for a member that runs."""
        known = self._cluster.members.get(pod.uid)
        sizes = self._cluster.known_sizes(gang)
        if known is None or sizes is None or leaf_count not in sizes.leaf_counts:
            return False
        request = _for_later(known.request, leaf_count, sizes.leaf_counts)
        context = DecisionContext(
            kind=RowKind.PLACEMENT,
            now=self._clock.monotonic(),
            applies_preemption=False,
            pod=str(gang),
        )
        nodes = self._nodes_for(pod)
        decision = self._cluster.decide(request, candidate_nodes=nodes, context=context)
        return isinstance(decision, Place)


def _for_later(
    request: MemberRequest, leaf_count: int, leaf_counts: tuple[int, ...]
) -> MemberRequest:
    return replace(request, member=NO_MEMBER, leaf_count=leaf_count, gang_leaf_counts=leaf_counts)
