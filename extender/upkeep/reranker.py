"""Classes that changed: gangs that run or wait count at the priority that their class has now.

Nothing that runs is ended by that alone; who may end whom is another question from then on.
"""

import logging
from collections.abc import Callable

from extender.cells.model import GangView
from extender.cells.observe.reconfiguration import Effect
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink, ToBound
from extender.feeds.requests import ToRequest
from kube.follow.policies import PolicySink
from kube.read.pods import ManagedPod
from policy.errors import RequestError

logger = logging.getLogger(__name__)


class Reranker:
    """Follows the Classes document."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        policies: PolicySink,
        to_request: ToRequest,
        to_bound: ToBound,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._policies = policies
        self._to_request = to_request
        self._to_bound = to_bound
        self._classes = policies.policy.classes
        self._is_live = False
        self.on_change: list[Callable[[], None]] = []
        """Who wants to know that pods have other priorities now."""
        policies.on_change.append(self._follow)

    def start(self) -> None:
        """Follow every change from now on: what was recovered has its priorities."""
        self._is_live = True

    def _follow(self) -> None:
        if self._policies.policy.classes == self._classes:
            return
        self._classes = self._policies.policy.classes
        self._cluster.touch()
        if self._is_live:
            self._rerank()

    def _rerank(self) -> None:
        gangs = self._cluster.gangs()
        ranks = {gang.gang: self._priority(gang) for gang in gangs}
        before = {gang.gang: gang.priority for gang in gangs}
        changed = {
            gang: rank for gang, rank in ranks.items() if rank is not None and rank != before[gang]
        }
        if changed:
            effects = self._cluster.rerank(changed)
            told = [one.reason for one in effects if one.effect is not Effect.KEPT]
            logger.info("classes changed", extra={"gangs": len(changed), "changed": told})
        for tell in self.on_change:
            tell()

    def _priority(self, gang: GangView) -> int | None:
        """What a gang's class means now, by the first member that says so."""
        for uid in (*gang.members, *gang.waiting_members):
            pod = self._pods.get(uid)
            priority = self._priority_of(pod) if pod is not None else None
            if priority is not None:
                return priority
        return None

    def _priority_of(self, pod: ManagedPod) -> int | None:
        """None for a pod that waits and whose class is gone: it is told so when it asks."""
        try:
            request = self._to_bound(pod).request if pod.node else self._to_request(pod)
        except RequestError:
            return None
        return request.priority
