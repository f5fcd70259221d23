"""Leases that are not used in time end: their leaf cells are free again."""

import asyncio
import logging
from collections.abc import Collection
from typing import Final, NoReturn

from extender.cluster.cluster import Cluster
from extender.metrics import ExtenderMetrics
from policy.submission import GangKey, PodUid
from service.clock import Clock

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 1.0


async def expire_leases(
    cluster: Cluster, *, being_bound: Collection[PodUid], clock: Clock, metrics: ExtenderMetrics
) -> NoReturn:
    """End leases that were not used in time, until cancelled."""
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        for gang in expire_unused(cluster, being_bound=being_bound, now=clock.monotonic()):
            metrics.expired.inc()
            logger.info("lease expired", extra={"gang": str(gang)})


def expire_unused(
    cluster: Cluster, *, being_bound: Collection[PodUid], now: float
) -> list[GangKey]:
    """End leases, but none of a pod that is being bound: that may have begun at the last moment."""
    using = [cluster.members.get(uid) for uid in being_bound]
    for gang in sorted({one.request.gang for one in using if one is not None}):
        cluster.renew(gang, now=now)
    return cluster.expire(now=now)
