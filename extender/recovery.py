"""From nothing to the first answer: what is there is known as a whole before anything is decided.

Documents, nodes and pods are listed first. Then the cells are built, the pods that run or were
released are taken in together, high priorities first, and the invariants are checked once. Until
that is done every verb is refused: an answer from half-known state would hand out cells twice.
"""

import gc
import logging

from extender.cluster import Cluster
from extender.halves import HalfBoundGangs
from extender.pods import PodSink
from extender.reranking import Reranker
from extender.topology import TopologyKeeper

logger = logging.getLogger(__name__)


def recover(
    *,
    keeper: TopologyKeeper,
    cluster: Cluster,
    pods: PodSink,
    halves: HalfBoundGangs,
    reranker: Reranker,
    now: float,
) -> None:
    """Build the state that everything which was listed means together."""
    keeper.start()
    pods.recover(now=now)
    reranker.start()
    halves.complete()
    cluster.engine.check()
    # What was built stays: the collector need not look at it again.
    gc.collect()
    gc.freeze()
    logger.info("recovered", extra={"nodes": len(cluster.nodes), "pods": len(pods)})
