"""From nothing to the first answer, when a replica becomes the leader.

Documents, nodes and pods are listed first. Then the cells are built, the pods that run or were
released are taken over together, high priorities first, and the invariants are checked once. Until
then every verb is refused: an answer from incomplete state would hand out cells twice.

At 5,000 nodes and 34,000 pods that takes three seconds. It is done in steps, so that leadership is
renewed and probes are answered meanwhile.
"""

import logging

from extender.cells.views.listings import Stepwise
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.feeds.topology import TopologyFollower
from extender.upkeep.half_bound_gangs import HalfBoundGangs
from extender.upkeep.late_leases import LateLeases
from extender.upkeep.reranker import Reranker
from service.garbage import settle_collector

logger = logging.getLogger(__name__)


def recover(
    *,
    topology: TopologyFollower,
    cluster: Cluster,
    pods: PodSink,
    half_bound: HalfBoundGangs,
    late_leases: LateLeases,
    reranker: Reranker,
    now: float,
) -> Stepwise[None]:
    """Build the state from all that was listed, step by step; none of it may change meanwhile."""
    settle_collector()
    yield
    yield from topology.build()
    settle_collector()
    yield from pods.recover(now=now)
    half_bound.complete()
    late_leases.grant()
    yield
    yield from cluster.check_stepwise()
    settle_collector()
    topology.start()
    reranker.start()
    logger.info("recovered", extra={"nodes": len(cluster.nodes), "pods": len(pods)})
