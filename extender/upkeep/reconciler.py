"""Drift between the engine and the pods that exist: found, mended, counted.

There should be none: every change comes over the feeds. What is found here is a lost or reordered
event, a bug, or somebody who wrote where nobody else should.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Generator
from enum import StrEnum
from typing import Final, NoReturn

from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink, ToBound
from extender.metrics import ExtenderMetrics
from extender.outcomes.waiting_list import WaitingList
from kube.read.pods import ManagedPod
from policy.submission import PodUid
from service.tasks import in_slices

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 30.0
_ROUNDS_OF_DOUBT: Final = 4
"""A binding that an API server has taken in may still be made: for a minute, by its own limit."""
_OVERDUE_SECONDS: Final = 60.0
"""So long after its grace period a pod may need to go."""
_SLICE: Final = 500
"""Pods that are compared at once: some milliseconds, in which nobody is answered."""


class Drift(StrEnum):
    """In which way engine and pods differ."""

    MISSING = "missing"
    """A pod runs, and the engine does not know, or thinks it elsewhere."""
    GHOST = "ghost"
    """The engine counts a bound member whose pod does not exist, or somebody waits who does not."""
    UNBOUND = "unbound"
    """A binding was in doubt, and it is certain by now that it was not made."""
    CONTRADICTION = "contradiction"
    """A pod says that it has leaf cells which are another's: it is counted on other ones."""


class Reconciler:
    """Compares the engine with the pods."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        waiting: WaitingList,
        to_bound: ToBound,
        metrics: ExtenderMetrics,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._waiting = waiting
        self._to_bound = to_bound
        self._metrics = metrics
        self._contradicting: set[PodUid] = set()
        self._suspects: set[PodUid] = set()
        self._doubts: Counter[PodUid] = Counter()
        """Pods that should be bound and are not: for how many rounds."""
        self._ending: Counter[PodUid] = Counter()
        """Pods that were told to end: for how many rounds."""
        pods.on_end.append(self._forget)

    def _forget(self, pod: ManagedPod) -> None:
        self._contradicting.discard(pod.uid)
        self._doubts.pop(pod.uid, None)
        self._ending.pop(pod.uid, None)

    async def run(self) -> NoReturn:
        """Compare now and then, until cancelled."""
        while True:
            await in_slices(self.reconcile())
            await asyncio.sleep(_EVERY_SECONDS)

    def reconcile(self) -> Generator[None, None, None]:
        """Mend every difference, in slices."""
        for index, uid in enumerate([pod.uid for pod in self._pods]):
            if index % _SLICE == 0:
                yield
            pod = self._pods.get(uid)
            if pod is not None and pod.node is not None:
                self._mend(pod)
                self._await_end(pod)
            elif pod is not None:
                self._doubt(pod)
        for uid in self._ghosts():
            self._count(Drift.GHOST, uid)
            self._waiting.remove_pod(uid)
            self._cluster.forget_member(uid)

    def _doubt(self, pod: ManagedPod) -> None:
        """Give up the place of a pod that we could not tell to be bound, and that is not."""
        known = self._cluster.members.get(pod.uid)
        if known is None or not known.is_bound:
            self._doubts.pop(pod.uid, None)
            return
        self._doubts[pod.uid] += 1
        if self._doubts[pod.uid] >= _ROUNDS_OF_DOUBT:
            self._count(Drift.UNBOUND, pod.uid)
            self._doubts.pop(pod.uid)
            self._cluster.forget_member(pod.uid)

    def _await_end(self, pod: ManagedPod) -> None:
        """Let nobody count on the end of a pod that is stuck in it."""
        if not pod.is_deleting:
            return
        self._ending[pod.uid] += 1
        if self._ending[pod.uid] * _EVERY_SECONDS > pod.grace_seconds + _OVERDUE_SECONDS:
            self._cluster.observe_overdue(pod.uid)

    def _mend(self, pod: ManagedPod) -> None:
        self._doubts.pop(pod.uid, None)
        placement = self._cluster.placement(pod.uid)
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
        bound = [uid for uid, member in self._cluster.members.items() if member.is_bound]
        asked = (*bound, *self._waiting.pods)
        unknown = {uid for uid in asked if not self._pods.knows(uid)}
        ghosts = sorted(unknown & self._suspects)
        self._suspects = unknown
        return ghosts

    def _count(self, drift: Drift, uid: PodUid) -> None:
        self._metrics.drift.labels(drift).inc()
        logger.warning("drift", extra={"kind": drift, "pod_uid": uid})
