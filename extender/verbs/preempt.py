"""Preempt: which victims kube-scheduler ends for a pod, and which ones Cellgate ends.

kube-scheduler ends the pods that the answer names on one node, and no others. Cellgate ends the
rest of their gangs. It ends all of them where kube-scheduler does not ask: kube-scheduler looks for
victims only on nodes that look full to it.
"""

from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import Any

from extender.cells.model import Decision, Preempt
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.outcomes.evictions import Evictions
from extender.outcomes.outcomes import EndedBy
from extender.outcomes.waiting_list import RefusedPod, WaitingList
from extender.queue.reasons import preempted
from extender.verbs import wire
from extender.verbs.questions import Questions
from kube.read.pods import ManagedPod
from policy.errors import RequestError
from policy.submission import GangKey, NodeName, PodUid
from state.log.records import RowKind


class Preemption:
    """Answers preempt."""

    def __init__(
        self,
        *,
        plans_for: Callable[[PodUid], bool],
        questions: Questions,
        pods: PodSink,
        waiting: WaitingList,
        cluster: Cluster,
        evictions: Evictions,
        being_bound: Collection[PodUid],
    ) -> None:
        self._plans_for = plans_for
        self._questions = questions
        self._pods = pods
        self._waiting = waiting
        self._cluster = cluster
        self._evictions = evictions
        self._being_bound = being_bound

    def preempt(self, arguments: wire.PreemptArguments) -> dict[str, Any]:
        """Name the victims on one node; nobody where the engine sees no use in that."""
        pod = self._questions.read(arguments.pod)
        if pod is None or self._plans_for(pod.uid):
            return wire.veto_answer()  # the planner ends victims before it lets a gang go
        waiting = self._waiting.pods.get(pod.uid)
        # Nodes with room were offered to filter in the same cycle; here are those without.
        nodes = dict.fromkeys([*arguments.candidate_nodes, *(waiting.offered if waiting else ())])
        decision = self._decide(pod, list(nodes), ended_by=EndedBy.KUBE_SCHEDULER)
        if not isinstance(decision, Preempt):
            return wire.veto_answer()
        return self._name_victims(decision, arguments.candidate_nodes)

    def _decide(self, pod: ManagedPod, nodes: Sequence[NodeName], *, ended_by: EndedBy) -> Decision:
        """Decide, and reserve the cells that victims make free."""
        return self._questions.decide(
            pod, dict.fromkeys(nodes), kind=RowKind.PREEMPTION, ended_by=ended_by
        )

    def _name_victims(self, decision: Preempt, nodes: Collection[NodeName]) -> dict[str, Any]:
        """kube-scheduler ends those of one node; the others are ended by us."""
        members = self._members(decision.victims)
        on_node: dict[NodeName, list[ManagedPod]] = {}
        for pod in members:
            if pod.node is not None and pod.node in nodes and not pod.is_deleting:
                on_node.setdefault(pod.node, []).append(pod)
        node = min(on_node, default=None)
        named = on_node[node] if node is not None else []
        self._end(decision, [pod for pod in members if pod not in named])
        if node is None:
            return wire.veto_answer()
        return wire.victims_answer(node, [pod.uid for pod in named])

    def _members(self, gangs: Sequence[GangKey]) -> list[ManagedPod]:
        """All pods of victims that hold leaf cells."""
        members = (self._cluster.members.of_gang(gang) for gang in gangs)
        pods = map(self._pods.get, chain.from_iterable(members))
        return [pod for pod in pods if pod is not None]

    def _end(self, decision: Preempt, pods: Sequence[ManagedPod]) -> None:
        """End pods soon, as long as the preemptor exists; an unbound one only loses its place."""
        preemptor = decision.request.member
        for pod in pods:
            if self._is_bound(pod):
                why = preempted(pod.gang.key, by=decision.request).text
                self._evictions.start(
                    pod, why=why, is_wanted=lambda: not self._pods.has_ended(preemptor)
                )
            else:
                self._cluster.forget_member(pod.uid)

    def _is_bound(self, pod: ManagedPod) -> bool:
        """Whether a pod is bound, or may be before the feed says so."""
        known = self._cluster.members.get(pod.uid)
        is_known = known is not None and known.is_bound
        return pod.node is not None or is_known or pod.uid in self._being_bound

    def preempt_alone(self, waiting: RefusedPod) -> None:
        """End the victims of a pod for which kube-scheduler has found no use in ending any."""
        waiting.asks_to_preempt = False
        pod = self._pods.get(waiting.uid)
        if pod is None or pod.node is not None:
            return
        decision = self._decide_alone(pod, waiting)
        if isinstance(decision, Preempt):
            self._end(decision, self._members(decision.victims))

    def renew(self, waiting: RefusedPod) -> None:
        """Keep what is reserved for a pod while its victims take their time to end."""
        pod = self._pods.get(waiting.uid)
        victims = self._members(waiting.victims)
        are_ending = any(one.is_deleting or one.uid in self._evictions for one in victims)
        if pod is not None and pod.node is None and are_ending:
            self._decide_alone(pod, waiting)

    def _decide_alone(self, pod: ManagedPod, waiting: RefusedPod) -> Decision | None:
        """Decide while nobody asks; a pod that makes no sense any more is told so when it asks."""
        try:
            return self._decide(pod, waiting.offered, ended_by=EndedBy.CELLGATE)
        except RequestError:
            return None
