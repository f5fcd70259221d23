"""Preempt: which victims kube-scheduler ends for a pod, and which ones Cellgate ends.

kube-scheduler ends the pods that the answer names on one node, and no others. Cellgate ends the
rest of their gangs. It ends all of them where kube-scheduler does not ask: kube-scheduler looks for
victims only on nodes that look full to it. It also ends all of them where their workload may be
suspended: kube-scheduler would delete pods, and their Job would count failures.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Any

from extender.cells.answers import preempted
from extender.cells.model import Decision, Preempt, Reason
from extender.cells.views.listings import Stepwise
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.outcomes.evictions import Evictions
from extender.outcomes.outcomes import EndedBy
from extender.outcomes.waiting_list import RefusedPod, WaitingList
from extender.verbs import wire
from extender.verbs.pod_decider import PodDecider, read_uid
from kube.read.managed_pod import ManagedPod
from policy.errors import RequestError
from policy.submission import GangKey, NodeName, PodUid
from state.log.records import RowKind


class PreemptVerb:
    """Answers preempt."""

    def __init__(
        self,
        *,
        plans_for: Callable[[PodUid], bool],
        decider: PodDecider,
        pods: PodSink,
        waiting: WaitingList,
        cluster: Cluster,
        evictions: Evictions,
        may_suspend: Callable[[ManagedPod], bool],
        is_bound: Callable[[PodUid], bool],
    ) -> None:
        """`is_bound` also knows the bindings that the feed has not shown yet."""
        self._plans_for = plans_for
        self._decider = decider
        self._pods = pods
        self._waiting = waiting
        self._cluster = cluster
        self._evictions = evictions
        self._may_suspend = may_suspend
        self._is_bound = is_bound

    def prepare_stepwise(self, pod: Mapping[str, Any]) -> Stepwise[None]:
        """Prepare a decision about a pod, if that takes long."""
        if not self._plans_for(read_uid(pod)):
            yield from self._decider.prepare_stepwise(pod)

    def preempt(self, arguments: wire.PreemptArguments) -> dict[str, Any]:
        """Name the victims on one node; none where ending pods would not help."""
        pod = self._decider.read(arguments.pod)
        if pod is None:
            return wire.unchanged_answer(arguments)
        if pod.is_helper and not self._plans_for(pod.uid):
            return wire.unchanged_answer(arguments)
        if self._plans_for(pod.uid):
            return wire.veto_answer()  # the planner ends victims before it releases a gang
        waiting = self._waiting.pods.get(pod.uid)
        # In the same cycle filter was offered the nodes with room, preempt those without.
        nodes = dict.fromkeys([*arguments.candidate_nodes, *(waiting.offered if waiting else ())])
        decision = self._decider.decide(
            pod, nodes, kind=RowKind.PREEMPTION, ended_by=EndedBy.KUBE_SCHEDULER
        )
        if not isinstance(decision, Preempt):
            return wire.veto_answer()
        return self._name_victims(decision, arguments.candidate_nodes)

    def _name_victims(self, decision: Preempt, nodes: Collection[NodeName]) -> dict[str, Any]:
        """Leave the victims on one node to kube-scheduler, and end the others."""
        members = self._members(decision.victims)
        on_node: dict[NodeName, list[ManagedPod]] = {}
        for pod in members:
            is_named = pod.node in nodes and not pod.is_deleting and not self._may_suspend(pod)
            if pod.node is not None and is_named:
                on_node.setdefault(pod.node, []).append(pod)
        node = min(on_node, default=None)
        named = on_node[node] if node is not None else []
        self._end(decision, [pod for pod in members if pod not in named])
        if node is None:
            return wire.veto_answer()
        return wire.victims_answer(node, [pod.uid for pod in named])

    def _members(self, gangs: Sequence[GangKey]) -> list[ManagedPod]:
        """Return all pods of some gangs that hold leaf cells, and their helpers that run."""
        members = (self._cluster.members.of_gang(gang) for gang in gangs)
        pods = map(self._pods.get, chain.from_iterable(members))
        helpers = chain.from_iterable(self._pods.helpers.of_gang(gang) for gang in gangs)
        running = (pod for pod in helpers if pod.node is not None)
        return [*(pod for pod in pods if pod is not None), *running]

    def _end(self, decision: Preempt, pods: Sequence[ManagedPod]) -> None:
        """End pods, as long as the preemptor exists; an unbound pod only loses its place."""
        preemptor = decision.request.member
        for pod in pods:
            if pod.node is not None or self._is_bound(pod.uid):
                reason = self._reason(decision, pod)
                self._evictions.start(
                    pod,
                    why=reason.text,
                    is_wanted=lambda: not self._pods.has_ended(preemptor),
                    gives_notice=True,
                )
            else:
                self._cluster.forget_member(pod.uid)

    def _reason(self, decision: Preempt, pod: ManagedPod) -> Reason:
        member = self._cluster.members.get(pod.uid)
        gang = pod.gang.key if member is None else member.request.gang
        return preempted(
            pod.gang.key,
            by=decision.request,
            own=self._cluster.victim_priority(gang),
            is_foreign=member is not None and member.is_foreign,
        )

    def preempt_unasked(self, waiting: RefusedPod) -> None:
        """End the victims of a pod for which kube-scheduler did not ask to preempt."""
        waiting.asks_to_preempt = False
        decision = self._decide_unasked(waiting)
        if isinstance(decision, Preempt):
            self._end(decision, self._members(decision.victims))

    def renew(self, waiting: RefusedPod) -> None:
        """Renew the reservation of a pod whose victims are still ending."""
        victims = self._members(waiting.victims)
        if any(pod.is_deleting or pod.uid in self._evictions for pod in victims):
            self._decide_unasked(waiting)

    def _decide_unasked(self, waiting: RefusedPod) -> Decision | None:
        """Decide without a request of kube-scheduler; None for a pod that cannot wait any more."""
        pod, nodes = self._pods.get(waiting.pod.uid), dict.fromkeys(waiting.offered)
        if pod is None or pod.node is not None:
            return None
        try:
            return self._decider.decide(
                pod, nodes, kind=RowKind.PREEMPTION, ended_by=EndedBy.CELLGATE
            )
        except RequestError:
            return None
