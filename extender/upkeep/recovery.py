"""From nothing to the first answer: what is there is known as a whole before anything is decided.

Documents, nodes and pods are listed first. Then the cells are built, the pods that run or were
released are taken in together, high priorities first, and the invariants are checked once. Until
that is done every verb is refused: an answer from half-known state would hand out cells twice.

At 5,000 nodes and 34,000 pods that takes three seconds, so it is done bit by bit: leadership is
renewed and probes are answered meanwhile. The largest bit, building the cells, takes half a second.
"""

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from extender.cells.views.listings import Stepwise
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.feeds.topology import TopologyKeeper
from extender.upkeep.half_bound_gangs import HalfBoundGangs
from extender.upkeep.reranker import Reranker

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
) -> Stepwise[None]:
    """Build, bit by bit, the state that everything which was listed means together.

    Nothing of what was listed may change meanwhile.
    """
    with _sparing_the_collector():
        keeper.build()
        yield
        gc.collect()  # of the cells as they were without a document
        yield from pods.recover(now=now)
        halves.complete()
        yield
        yield from cluster.engine.check_stepwise()
    keeper.start()
    reranker.start()
    logger.info("recovered", extra={"nodes": len(cluster.nodes), "pods": len(pods)})


@contextmanager
def _sparing_the_collector() -> Iterator[None]:
    """What is built stays, and is never looked at; what comes later is looked at less often."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*_COLLECT_AFTER)
        gc.enable()
