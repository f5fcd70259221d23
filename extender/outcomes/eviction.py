"""End pods for the sake of others, tell their owners, and count them: each of it once.

Before us its owner may have ended a pod, or kube-scheduler, or the leader that we follow. The first
two need no word of ours. That leader may have died before it could tell: so it is told again, in an
Event that is not written twice, whoever writes it. It is not counted again.
"""

import logging
from collections.abc import Callable
from typing import Protocol

from extender.metrics import ExtenderMetrics
from extender.outcomes.announcer import Announcer
from kube.api.binder import PodRef
from kube.api.pod_ender import Ended
from kube.read.pods import ManagedPod

logger = logging.getLogger(__name__)


class EndPods(Protocol):
    """What ending pods needs of Kubernetes."""

    async def end(self, pod: PodRef, *, why: str, is_wanted: Callable[[], bool]) -> Ended:
        """End the pod gracefully; BackendError if it was spared, or that failed."""


class Ending:
    """Ends pods, one at a time or many at once."""

    def __init__(self, ender: EndPods, *, announcer: Announcer, metrics: ExtenderMetrics) -> None:
        self._ender = ender
        self._announcer = announcer
        self._metrics = metrics

    async def end(self, pod: ManagedPod, *, why: str, is_wanted: Callable[[], bool]) -> None:
        """End a pod after its grace period, as long as that is wanted.

        BackendError if it was spared, or if nobody knows.
        """
        reference = PodRef(
            namespace=pod.namespace, name=pod.name, uid=pod.uid, resource_version=None
        )
        ended = await self._ender.end(reference, why=why, is_wanted=is_wanted)
        if ended is not Ended.BY_OTHERS:
            self._announcer.preempted(pod, why=why)
        if ended is Ended.NOW:
            self._metrics.victims.inc()
            logger.info("victim ended", extra={"pod_uid": pod.uid, "why": why})
