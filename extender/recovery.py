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
from extender.policies import Policies
from extender.topology import TopologyKeeper
from service.health import Health

logger = logging.getLogger(__name__)

RECOVERED: Final = "state recovered from running pods"
USABLE_CLUSTER: Final = "a cluster document that can be used"


async def recover(
    *,
    policies: Policies,
    keeper: TopologyKeeper,
    cluster: Cluster,
    pods: PodSink,
    halves: HalfBoundGangs,
    health: Health,
    now: float,
) -> None:
    """Build the state that everything which was listed means together."""
    await policies.usable.wait()
    health.meet(USABLE_CLUSTER)
    keeper.start()
    pods.recover(now=now)
    halves.complete()
    cluster.engine.check()
    # What was built stays: the collector need not look at it again.
    gc.collect()
    gc.freeze()
    logger.info("recovered", extra={"nodes": len(cluster.nodes), "pods": len(pods)})
    health.meet(RECOVERED)
