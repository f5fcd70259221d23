"""Tells the engine which gangs cannot be ended without breaking a PodDisruptionBudget.

A gang ends as a whole. So its end breaks a budget that allows fewer pods to be ended than the gang
has among the pods that the budget counts. Gangs are judged one by one: two gangs that a budget
allows to be ended, but not both, count as allowed.
"""

import asyncio
from collections import Counter
from typing import Final, NoReturn

from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from kube.follow.disruption_budgets import DisruptionBudget, DisruptionBudgetSink
from kube.read.managed_pod import ManagedPod
from policy.submission import GangKey
from service.memory import BoundedMap
from service.tasks import wait_up_to

_SETTLE_SECONDS: Final = 0.1
"""How long changes are collected: the pods of a gang change together."""
_LOOK_SECONDS: Final = 60.0
_MOST_NOTES: Final = 100_000


class BudgetSync:
    """Compares budgets with the pods of gangs, where either has changed."""

    def __init__(self, *, budgets: DisruptionBudgetSink, cluster: Cluster, pods: PodSink) -> None:
        self._budgets = budgets
        self._cluster = cluster
        self._pods = pods
        self._changed: dict[GangKey, None] = {}
        self._notes: BoundedMap[GangKey, str] = BoundedMap(_MOST_NOTES)
        """By gang: what is added to the reason for its end."""
        self._news = asyncio.Event()
        budgets.on_change.append(self._note_namespace)
        pods.on_change.append(self._note)
        pods.on_end.append(self._note)

    def _note_namespace(self, namespace: str) -> None:
        for pod in self._pods:
            if pod.namespace == namespace:
                self._note_gang(pod)

    def _note(self, pod: ManagedPod) -> None:
        if self._budgets.has_any(pod.namespace):
            self._note_gang(pod)

    def _note_gang(self, pod: ManagedPod) -> None:
        member = self._cluster.members.get(pod.uid)
        if member is not None and member.is_bound:
            self._changed[member.request.gang] = None
            self._news.set()

    async def run(self) -> NoReturn:
        """Tell the engine what has changed, until cancelled."""
        for pod in self._pods:
            self._note(pod)
        while True:
            await wait_up_to(_LOOK_SECONDS, self._news)
            await asyncio.sleep(_SETTLE_SECONDS)
            self.look()

    def look(self) -> None:
        """Judge the gangs that may have changed."""
        changed, self._changed = self._changed, {}
        self._news.clear()
        for gang in changed:
            budget = self._broken(gang)
            self._cluster.observe_budget(gang, breaks=budget is not None)
            if budget is not None:
                self._notes[gang] = _note(budget)
            else:
                self._notes.pop(gang, None)

    def _broken(self, gang: GangKey) -> DisruptionBudget | None:
        """Return a budget that forbids to end a gang; None if there is none."""
        counted: Counter[DisruptionBudget] = Counter()
        for uid in self._cluster.members.of_gang(gang):
            pod = self._pods.get(uid)
            if pod is not None and pod.node is not None and not pod.is_deleting:
                counted.update(self._budgets.of(pod.namespace, pod.labels))
        broken = [one for one, count in counted.items() if count > one.allowed]
        return min(broken, key=lambda one: one.name, default=None)

    def note_for(self, pod: ManagedPod) -> str:
        """Return what to add to the reason for which a pod ends; empty if no budget is broken."""
        member = self._cluster.members.get(pod.uid)
        return self._notes.get(member.request.gang, "") if member is not None else ""


def _note(budget: DisruptionBudget) -> str:
    return (
        f"; this breaks PodDisruptionBudget {budget.namespace}/{budget.name}, which allows "
        f"{budget.allowed} disruptions: what a VC was promised comes first"
    )
