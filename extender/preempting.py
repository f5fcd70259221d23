"""Preempt: whom kube-scheduler may end for a pod, and whom we end ourselves."""

from collections.abc import Collection
from typing import Any

from extender import wire
from extender.cells.model import Preempt
from extender.metrics import ExtenderMetrics
from extender.pods import PodSink
from extender.questions import Questions
from extender.victims import Victims
from extender.waiting import Waiting, WaitingPods
from kube.pods import ManagedPod
from policy.submission import NodeName
from state.records import Kind


class Preemption:
    """Answers preempt."""

    def __init__(
        self,
        *,
        questions: Questions,
        pods: PodSink,
        waiting: WaitingPods,
        victims: Victims,
        metrics: ExtenderMetrics,
    ) -> None:
        self._questions = questions
        self._pods = pods
        self._waiting = waiting
        self._victims = victims
        self._metrics = metrics

    def preempt(self, arguments: wire.PreemptArguments) -> dict[str, Any]:
        """Name the victims on one node; nobody where the engine sees no use in that."""
        pod = self._questions.read(arguments.pod)
        if pod is None:
            return wire.veto_answer()
        waiting = self._waiting.get(pod.uid)
        if waiting is not None:
            waiting.asks_to_preempt = False
        # Nodes with room were offered to filter in the same cycle; here are those without.
        candidates = dict.fromkeys(arguments.candidate_nodes)
        candidates |= dict.fromkeys(map(NodeName, waiting.offered if waiting else ()))
        decision = self._questions.decide(
            pod, candidates, kind=Kind.PREEMPTION, applies_preemption=True
        )
        if not isinstance(decision, Preempt):
            return wire.veto_answer()
        self._metrics.preemptions.labels("kube-scheduler").inc()
        return self._name_victims(decision, arguments.candidate_nodes)

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

    def preempt_alone(self, waiting: Waiting) -> None:
        """End the victims of a pod for which kube-scheduler has found no use in ending any."""
        pod = self._pods.get(waiting.uid)
        waiting.asks_to_preempt = False
        if pod is None or pod.node is not None:
            return
        nodes = dict.fromkeys(map(NodeName, waiting.offered))
        decision = self._questions.decide(pod, nodes, kind=Kind.PREEMPTION, applies_preemption=True)
        if isinstance(decision, Preempt):
            self._metrics.preemptions.labels("cellgate").inc()
            self._victims.end(decision, self._victims.members(decision))
