"""What is done now and then: leases that were not used end, and victims that nobody ends are."""

import asyncio
import logging
from collections.abc import Collection
from typing import Final, NoReturn

from extender.cluster.cluster import Cluster
from extender.metrics import ExtenderMetrics
from extender.outcomes.waiting_list import WaitingList
from extender.verbs.preempt import Preemption
from policy.submission import GangKey, PodUid
from service.clock import Clock

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 1.0
_RENEW_ROUNDS: Final = 10
"""Often enough for a lease of a minute."""


async def expire_leases(
    cluster: Cluster, *, being_bound: Collection[PodUid], clock: Clock, metrics: ExtenderMetrics
) -> NoReturn:
    """End leases that were not used in time."""
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        for gang in expire_unused(cluster, being_bound=being_bound, now=clock.monotonic()):
            metrics.expired.inc()
            logger.info("lease expired", extra={"gang": str(gang)})


def expire_unused(
    cluster: Cluster, *, being_bound: Collection[PodUid], now: float
) -> list[GangKey]:
    """End leases, but none that is being used: it may have begun at its last moment."""
    using = [cluster.members.get(uid) for uid in being_bound]
    for gang in sorted({one.request.gang for one in using if one is not None}):
        cluster.renew(gang, now=now)
    return cluster.expire(now=now)


async def see_preemptions_through(
    waiting: WaitingList, preemption: Preemption, *, clock: Clock, patience_seconds: float
) -> NoReturn:
    """Preempt where kube-scheduler sees no need to, and keep what victims are about to leave."""
    rounds = 0
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        rounds += 1
        now = clock.now()
        for pod in list(waiting.pods.values()):
            is_overdue = (now - pod.since).total_seconds() >= patience_seconds
            if pod.asks_to_preempt and is_overdue:
                preemption.preempt_alone(pod)
            elif pod.victims and rounds % _RENEW_ROUNDS == 0:
                preemption.renew(pod)
