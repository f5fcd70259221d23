"""Gangs get the priorities that their classes have now.

The Classes document may change, and a gang's effective class may be raised. That alone ends no
gang. From then on, preemption goes by the new priorities.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NoReturn

from extender.cells.model import GangView
from extender.cells.observe.reconfiguration import Effect
from extender.cells.views.listings import Stepwise
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink, ToBound
from extender.feeds.requests import ToRequest
from kube.follow.policies import PolicySink
from kube.read.managed_pod import ManagedPod, charged_gang
from policy.errors import RequestError
from policy.submission import GangKey
from service.tasks import in_slices

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
        turn: asyncio.Lock,
    ) -> None:
        """`turn` is held while the cluster is changed in steps."""
        self._turn = turn
        self._news = asyncio.Event()
        self._cluster = cluster
        self._pods = pods
        self._policies = policies
        self._to_request = to_request
        self._to_bound = to_bound
        self._classes = policies.policy.classes
        self._is_live = False
        self.on_change: list[Callable[[], Stepwise[None]]] = []
        """Called when pods have other priorities; each may take many steps."""
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
            # Pods that are read from now on have new priorities, gangs that run still old ones.
            self._cluster.suspend_preemption(is_suspended=True)
            self._news.set()

    async def run(self) -> NoReturn:
        """Give gangs other priorities whenever classes have changed, until cancelled."""
        while True:
            await self._news.wait()
            async with self._turn:
                await in_slices(self.rerank())

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

    def rerank(self) -> Stepwise[None]:
        """Give all gangs the priorities of their classes; then gangs may be preempted again."""
        self._news.clear()
        changed: dict[GangKey, int] = {}
        for gang in (yield from self._cluster.gangs_stepwise()):
            rank = self._priority(gang)
            if rank is not None and rank != gang.priority:
                changed[gang.gang] = rank
            yield
        if changed:
            effects = yield from self._cluster.rerank_stepwise(changed)
            changes = [one.reason for one in effects if one.effect is not Effect.KEPT]
            logger.info("classes changed", extra={"gangs": len(changed), "changed": changes})
        for steps in self.on_change:
            yield from steps()
        if not self._news.is_set():
            self._cluster.suspend_preemption(is_suspended=False)

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
