"""Drift between the engine and the pods that exist: found, mended, counted.

There should be none: every change comes over the feeds. What is found here is a lost or reordered
event, a bug, or somebody who wrote where nobody else should.
"""

import asyncio
import logging
from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NoReturn

from extender.cluster import Cluster
from extender.metrics import ExtenderMetrics
from extender.pods import PodSink, ToBound
from kube.pods import ManagedPod
from policy.submission import PodUid
from service.tasks import in_slices

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 30.0
_SLICE: Final = 500
"""Pods that are compared at once: some milliseconds, in which nobody is answered."""


class Drift(StrEnum):
    """In which way engine and pods differ."""

    MISSING = "missing"
    """A pod runs, and the engine does not know, or thinks it elsewhere."""
    GHOST = "ghost"
    """The engine counts a bound member whose pod does not exist."""
    CONTRADICTION = "contradiction"
    """A pod says that it has leaf cells which are another's: it is counted on other ones."""


class Reconciler:
    """Compares the engine with the pods."""

    def __init__(
        self, *, cluster: Cluster, pods: PodSink, to_bound: ToBound, metrics: ExtenderMetrics
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._to_bound = to_bound
        self._metrics = metrics
        self._contradicting: set[PodUid] = set()
        self._suspects: set[PodUid] = set()
        pods.on_end.append(lambda pod: self._contradicting.discard(pod.uid))

    async def run(self) -> NoReturn:
        """Compare now and then, until cancelled."""
        while True:
            await in_slices(self.reconcile())
            await asyncio.sleep(_EVERY_SECONDS)

    def reconcile(self) -> Iterator[None]:
        """Mend every difference, in slices."""
        for index, uid in enumerate([pod.uid for pod in self._pods]):
            if index % _SLICE == 0:
                yield
            pod = self._pods.get(uid)
            if pod is not None and pod.node is not None:
                self._mend(pod)
        for uid in self._ghosts():
            self._count(Drift.GHOST, uid)
            self._cluster.forget_member(uid)

    def _mend(self, pod: ManagedPod) -> None:
        placement = self._cluster.engine.placement(pod.uid)
        if placement is None or placement.node != pod.node:
            self._count(Drift.MISSING, pod.uid)
            self._cluster.observe_bound(self._to_bound(pod))
            return
        told = pod.placement
        is_other = told is not None and sorted(told.leaf_cells) != sorted(placement.leaf_cells)
        if is_other and pod.uid not in self._contradicting:
            self._contradicting.add(pod.uid)
            self._count(Drift.CONTRADICTION, pod.uid)

    def _ghosts(self) -> list[PodUid]:
        """Members without a pod, now and the last time: a feed may be behind what we have bound."""
        unknown = {
            uid
            for uid, member in self._cluster.members.items()
            if member.is_bound and not self._pods.knows(uid)
        }
        ghosts = sorted(unknown & self._suspects)
        self._suspects = unknown
        return ghosts

    def _count(self, drift: Drift, uid: PodUid) -> None:
        self._metrics.drift.labels(drift).inc()
        logger.warning("drift", extra={"kind": drift, "pod_uid": uid})
