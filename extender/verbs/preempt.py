"""Preempt: whom kube-scheduler may end for a pod, and whom we end ourselves."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from extender.cells.model import Decision, Preempt
from extender.feeds.pod_feed import PodSink
from extender.outcomes.outcomes import EndedBy
from extender.outcomes.victims import Victims
from extender.outcomes.waiting_list import RefusedPod, WaitingList
from extender.verbs import wire
from extender.verbs.questions import Questions
from kube.read.pods import ManagedPod
from policy.errors import RequestError
from policy.submission import NodeName, PodUid
from state.log.records import Kind


class Preemption:
    """Answers preempt."""

    def __init__(
        self,
        *,
        plans_for: Callable[[PodUid], bool],
        questions: Questions,
        pods: PodSink,
        waiting: WaitingList,
        victims: Victims,
    ) -> None:
        self._plans_for = plans_for
        self._questions = questions
        self._pods = pods
        self._waiting = waiting
        self._victims = victims

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
            pod, dict.fromkeys(nodes), kind=Kind.PREEMPTION, ended_by=ended_by
        )

    def _name_victims(self, decision: Preempt, nodes: Collection[NodeName]) -> dict[str, Any]:
        """kube-scheduler ends those of one node; the others are ended by us."""
        members = self._victims.members(decision)
        on_node: dict[NodeName, list[ManagedPod]] = {}
        for pod in members:
            if pod.node is not None and pod.node in nodes and not pod.is_deleting:
                on_node.setdefault(pod.node, []).append(pod)
        node = min(on_node, default=None)
        named = on_node[node] if node is not None else []
        self._victims.end(decision, [pod for pod in members if pod not in named])
        if node is None:
            return wire.veto_answer()
        return wire.victims_answer(node, [pod.uid for pod in named])

    def preempt_alone(self, waiting: RefusedPod) -> None:
        """End the victims of a pod for which kube-scheduler has found no use in ending any."""
        waiting.asks_to_preempt = False
        pod = self._pods.get(waiting.uid)
        if pod is None or pod.node is not None:
            return
        decision = self._decide_alone(pod, waiting)
        if isinstance(decision, Preempt):
            self._victims.end(decision, self._victims.members(decision))

    def renew(self, waiting: RefusedPod) -> None:
        """Keep what is reserved for a pod while its victims take their time to end."""
        pod = self._pods.get(waiting.uid)
        if pod is not None and pod.node is None and self._victims.are_ending(waiting.victims):
            self._decide_alone(pod, waiting)

    def _decide_alone(self, pod: ManagedPod, waiting: RefusedPod) -> Decision | None:
        """Decide while nobody asks; a pod that makes no sense any more is told so when it asks."""
        try:
            return self._decide(pod, waiting.offered, ended_by=EndedBy.CELLGATE)
        except RequestError:
            return None
