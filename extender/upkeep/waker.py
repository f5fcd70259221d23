"""Refused pods that would fit now are shown to kube-scheduler again.

kube-scheduler asks again about a refused pod when another pod ends. It may see that end before the
extender does; then it gets the old answer, and does not ask a third time for minutes. So pods that
were refused before the last change are planned again, and woken if they would fit.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NoReturn, Protocol

from extender.cells.model import Place
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import ToRequest
from extender.metrics import ExtenderMetrics
from extender.outcomes.waiting_list import RefusedPod, WaitingList
from kube.api.binder import PodRef
from kube.read.managed_pod import ManagedPod
from policy.errors import BackendError, RequestError
from policy.submission import NodeName
from service.clock import Clock

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 1.0


class WakePods(Protocol):
    """What the waker needs of Kubernetes."""

    async def wake(self, pod: PodRef) -> None:
        """Make kube-scheduler look at the pod; BackendError if that failed."""


class Waker:
    """Wakes pods that wait although they would fit."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        waiting: WaitingList,
        to_request: ToRequest,
        waker: WakePods,
        metrics: ExtenderMetrics,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._waiting = waiting
        self._to_request = to_request
        self._waker = waker
        self._metrics = metrics
        self._clock = clock

    async def run(self) -> NoReturn:
        """Check the refused pods every second, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            now = self._clock.monotonic()
            for waiting in list(self._waiting.pods.values()):
                is_old = waiting.asked <= now - _EVERY_SECONDS
                if is_old and waiting.version != self._cluster.version:
                    await self._check(waiting)

    async def _check(self, waiting: RefusedPod) -> None:
        """Wake a pod if it would fit now, at most once per change of the cluster."""
        pod = self._pods.get(waiting.pod.uid)
        if pod is None:
            return  # kube-scheduler saw it first: it is looked at when the watch shows it
        waiting.version = self._cluster.version
        if not self._would_fit(pod, waiting.offered):
            return
        try:
            await self._waker.wake(PodRef.of(pod))
            self._metrics.woken.inc()
        except BackendError as exc:
            waiting.version = -1
            logger.warning(
                "pod not woken, will retry", extra={"pod_uid": waiting.pod.uid, "error": str(exc)}
            )

    def _would_fit(self, pod: ManagedPod, offered: Sequence[NodeName]) -> bool:
        if pod.node is not None:
            return False
        try:
            request = self._to_request(pod)
        except RequestError:
            return False
        nodes = dict.fromkeys(offered)
        return isinstance(self._cluster.what_if(request, candidate_nodes=nodes), Place)
