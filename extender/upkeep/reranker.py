"""Gangs get the priorities that their classes have now.

The Classes document may change, and a gang's effective class may be raised. That alone ends no
gang. From then on, preemption goes by the new priorities.
"""

import logging
from collections.abc import Callable

from extender.cells.model import GangView
from extender.cells.observe.reconfiguration import Effect
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink, ToBound
from extender.feeds.requests import ToRequest
from kube.follow.policies import PolicySink
from kube.read.managed_pod import ManagedPod, charged_gang
from policy.errors import RequestError

logger = logging.getLogger(__name__)


class Reranker:
    """Follows the Classes document, and the effective classes of gangs."""

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
        """Called when pods have other priorities."""
        policies.on_change.append(self._follow)
        pods.on_raise.append(self._raise)

    def start(self) -> None:
        """Follow every change from now on: recovery has given all gangs their priorities."""
        self._is_live = True

    def _follow(self) -> None:
        if self._policies.policy.classes == self._classes:
            return
        self._classes = self._policies.policy.classes
        self._cluster.touch()
        if self._is_live:
            self._rerank()

    def _raise(self, pod: ManagedPod) -> None:
        """Give a gang the priority of its effective class."""
        if not self._is_live:
            return
        for member in self._pods.of_gang(pod.gang.key):
            if charged_gang(member) != charged_gang(pod):
                continue
            known, priority = self._cluster.members.get(member.uid), self._priority_of(member)
            if known is None or priority is None or known.request.priority >= priority:
                continue
            effects = self._cluster.raise_gang(known.request.gang, priority)
            changes = [one.reason for one in effects if one.effect is not Effect.KEPT]
            extra = {"gang": str(known.request.gang), "changed": changes}
            logger.info("gang raised", extra=extra)

    def _rerank(self) -> None:
        gangs = self._cluster.gangs()
        ranks = {gang.gang: self._priority(gang) for gang in gangs}
        before = {gang.gang: gang.priority for gang in gangs}
        changed = {
            gang: rank for gang, rank in ranks.items() if rank is not None and rank != before[gang]
        }
        if changed:
            effects = self._cluster.rerank(changed)
            changes = [one.reason for one in effects if one.effect is not Effect.KEPT]
            logger.info("classes changed", extra={"gangs": len(changed), "changed": changes})
        for notify in self.on_change:
            notify()

    def _priority(self, gang: GangView) -> int | None:
        """Return the priority of a gang's class, by the first member that has one."""
        for uid in (*gang.members, *gang.waiting_members):
            pod = self._pods.get(uid)
            priority = self._priority_of(pod) if pod is not None else None
            if priority is not None:
                return priority
        return None

    def _priority_of(self, pod: ManagedPod) -> int | None:
        """Return the priority of a pod's class; None for a waiting pod of an unlisted class."""
        try:
            request = self._to_bound(pod).request if pod.node else self._to_request(pod)
        except RequestError:
            return None
        return request.priority
