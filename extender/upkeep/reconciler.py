"""Differences between the engine and the pods that exist: found, corrected, counted.

There should be none, because the feeds report every change. A difference is the sign of a lost or
reordered event, of a bug, or of a program that wrote our annotations.
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
from kube.read.managed_pod import ManagedPod
from policy.submission import PodUid
from service.tasks import in_slices

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 30.0
_ROUNDS_OF_DOUBT: Final = 4
"""Rounds after which a binding in doubt was not made: an API server gives up after a minute."""
_OVERDUE_SECONDS: Final = 60.0
"""How long after its grace period a pod may take to end."""
_SLICE: Final = 500
"""Pods that are compared in one go: a few milliseconds without answers."""


class DriftKind(StrEnum):
    """How engine and pods differ."""

    MISSING = "missing"
    """A pod runs, and the engine does not know it, or has it on another node."""
    GHOST = "ghost"
    """The engine has a bound member, or the list a waiting pod, that does not exist."""
    UNBOUND = "unbound"
    """A binding was in doubt, and by now it is certain that it was not made."""
    CONTRADICTION = "contradiction"
    """A pod claims leaf cells of another pod: it is counted on other cells."""


class Reconciler:
    """Compares the engine with the pods, and corrects the engine."""

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
        """Pods that should be bound and are not, and for how many rounds."""
        self._ending: Counter[PodUid] = Counter()
        """Pods that are ending, and for how many rounds."""
        pods.on_end.append(self._forget)

    def _forget(self, pod: ManagedPod) -> None:
        self._contradicting.discard(pod.uid)
        self._doubts.pop(pod.uid, None)
        self._ending.pop(pod.uid, None)

    async def run(self) -> NoReturn:
        """Compare every half minute, until cancelled."""
        while True:
            await in_slices(self.reconcile())
            await asyncio.sleep(_EVERY_SECONDS)

    def reconcile(self) -> Generator[None, None, None]:
        """Correct every difference, in slices."""
        for index, uid in enumerate([pod.uid for pod in self._pods]):
            if index % _SLICE == 0:
                yield
            pod = self._pods.get(uid)
            if pod is not None and pod.node is not None:
                self._correct(pod)
                self._await_end(pod)
            elif pod is not None:
                self._doubt(pod)
        for uid in self._ghosts():
            self._count(DriftKind.GHOST, uid)
            self._waiting.pods.pop(uid, None)
            self._cluster.forget_member(uid)

    def _doubt(self, pod: ManagedPod) -> None:
        """Free the place of a pod whose binding was in doubt, and was not made."""
        known = self._cluster.members.get(pod.uid)
        if known is None or not known.is_bound:
            self._doubts.pop(pod.uid, None)
            return
        self._doubts[pod.uid] += 1
        if self._doubts[pod.uid] >= _ROUNDS_OF_DOUBT:
            self._count(DriftKind.UNBOUND, pod.uid)
            self._doubts.pop(pod.uid)
            self._cluster.forget_member(pod.uid)

    def _await_end(self, pod: ManagedPod) -> None:
        """Report a pod that takes too long to end: no gang waits for its leaf cells any more."""
        if not pod.is_deleting:
            return
        self._ending[pod.uid] += 1
        if self._ending[pod.uid] * _EVERY_SECONDS > pod.grace_seconds + _OVERDUE_SECONDS:
            self._cluster.observe_overdue(pod.uid)

    def _correct(self, pod: ManagedPod) -> None:
        self._doubts.pop(pod.uid, None)
        placement = self._cluster.placement(pod.uid)
        if placement is None or placement.node != pod.node:
            self._count(DriftKind.MISSING, pod.uid)
            self._cluster.observe_bound(self._to_bound(pod))
            return
        own = pod.placement
        is_other = own is not None and sorted(own.leaf_cells) != sorted(placement.leaf_cells)
        if is_other and pod.uid not in self._contradicting:
            self._contradicting.add(pod.uid)
            self._count(DriftKind.CONTRADICTION, pod.uid)

    def _ghosts(self) -> list[PodUid]:
        """Return members that had no pod in two rounds: a feed may be behind a binding."""
        bound = [uid for uid, member in self._cluster.members.items() if member.is_bound]
        asked = (*bound, *self._waiting.pods)
        unknown = {uid for uid in asked if not self._pods.knows(uid)}
        ghosts = sorted(unknown & self._suspects)
        self._suspects = unknown
        return ghosts

    def _count(self, drift: DriftKind, uid: PodUid) -> None:
        self._metrics.drift.labels(drift).inc()
        logger.warning("drift corrected", extra={"kind": drift, "pod_uid": uid})
