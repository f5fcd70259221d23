"""From nothing to the first answer: what is there is known as a whole before anything is decided.

Documents, nodes and pods are listed first. Then the cells are built, the pods that run or were
released are taken in together, high priorities first, and the invariants are checked once. Until
that is done every verb is refused: an answer from half-known state would hand out cells twice.
"""

import gc
import logging
from typing import Final

from extender.cluster import Cluster
from extender.halves import HalfBoundGangs
from extender.pods import PodSink
from extender.reranking import Reranker
from extender.topology import TopologyKeeper

logger = logging.getLogger(__name__)

_COLLECT_AFTER: Final = (10_000, 5, 1_000)
"""Objects of a generation. Views of a large cluster are some hundred thousand, without cycles; to
look at all of them for garbage takes a third of a second, in which nobody is answered."""


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
    _spare_the_collector()
    logger.info("recovered", extra={"nodes": len(cluster.nodes), "pods": len(pods)})


def _spare_the_collector() -> None:
    """What was built stays, and need not be looked at again; what comes is looked at less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
