"""What is done now and then: leases that were not used end, and victims that nobody ends are."""

import asyncio
import logging
from typing import Final, NoReturn

from extender.cluster import Cluster
from extender.metrics import ExtenderMetrics
from extender.preempting import Preemption
from extender.waiting import WaitingPods
from service.clock import Clock

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 5.0
"""kube-scheduler asks whom to preempt in the same cycle as filter, or not at all."""


async def expire_leases(cluster: Cluster, *, clock: Clock, metrics: ExtenderMetrics) -> NoReturn:
    """End leases that were not used in time."""
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        for gang in cluster.expire(now=clock.monotonic()):
            metrics.expired.inc()
            logger.info("lease expired", extra={"gang": str(gang)})


async def preempt_alone(waiting: WaitingPods, preemption: Preemption, *, clock: Clock) -> NoReturn:
    """Preempt for pods that kube-scheduler has found no victims for, but the engine has."""
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        now = clock.now()
        for pod in [pod for pod in waiting if pod.asks_to_preempt]:
            if (now - pod.since).total_seconds() >= _PATIENCE_SECONDS:
                preemption.preempt_alone(pod)
