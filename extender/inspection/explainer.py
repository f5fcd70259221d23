"""Why a pod is where it is, and what would become of one that does not exist yet."""

from collections.abc import Callable
from typing import Any, Final

from pydantic import Field

from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.inspection.json_views import (
    Shape,
    show_decision,
    show_placement,
    show_record,
    show_waiting,
)
from extender.outcomes.waiting_pods import WaitingPods
from extender.verbs.questions import ToRequest
from kube.follow.policies import PolicySink
from kube.read.pods import ManagedPod
from policy.errors import BackendError, RequestError
from policy.rules.decision import RuleDecision
from policy.submission import GroupName, NodeName, Submission, UserName
from service.bodies import Body
from state.log.log import DecisionLog

_ANYBODY: Final = "system:anonymous"
_DECISIONS: Final = 20
_QUEUED: Final = "queued"


class SimulateArguments(Body):
    """A pod that somebody thinks of creating, and who that would be."""

    pod: dict[str, Any] = Field(description="The pod, as it would be given to kubectl.")
    user: str = Field(default=_ANYBODY, description="Who would create it.")
    groups: list[str] = Field(default=[], description="The groups that the API server knows.")
    nodes: list[str] | None = Field(
        default=None, description="Nodes that kube-scheduler would offer; all, if not given."
    )


class Explainer:
    """Answers questions about single pods; changes nothing."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        waiting: WaitingPods,
        policies: PolicySink,
        to_request: ToRequest,
        why_queued: Callable[[ManagedPod], str],
        log: DecisionLog,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._waiting = waiting
        self._policies = policies
        self._to_request = to_request
        self._why_queued = why_queued
        self._log = log

    async def explain(self, namespace: str, name: str) -> Shape | None:
        """Tell everything about one pod; None if there is no such pod of ours."""
        pod = next((p for p in self._pods if (p.namespace, p.name) == (namespace, name)), None)
        if pod is None:
            return self._explain_misfit(namespace, name)
        member = self._cluster.members.get(pod.uid)
        waiting = self._waiting.get(pod.uid)
        shape: Shape = {
            "pod": pod.display_name,
            "uid": pod.uid,
            "gang": str(pod.gang.key),
            "gangForm": pod.gang.form,
            "vc": pod.vc,
            "class": pod.class_name,
            "leafCells": pod.leaf_count,
            "state": self._state(pod),
            "ending": pod.is_deleting,
        }
        if shape["state"] == _QUEUED:
            shape["queued"] = {"reason": self._why_queued(pod)}
        if member is not None:
            shape["priority"] = member.request.priority
            shape["foreign"] = member.is_foreign
            shape["placement"] = show_placement(member.placement)
        if waiting is not None:
            shape["waiting"] = show_waiting(waiting)
        shape["siblings"] = self._siblings(pod)
        return shape | await self._decisions(pod)

    def _explain_misfit(self, namespace: str, name: str) -> Shape | None:
        """Say what is wrong with a pod that asks for leaf cells and cannot be understood."""
        for misfit in self._pods.misfits:
            if (misfit.namespace, misfit.name) == (namespace, name):
                return {
                    "pod": f"{namespace}/{name}",
                    "uid": misfit.uid,
                    "state": "not understood",
                    "problem": misfit.problem,
                    "foreign": misfit.use is not None,
                    **({"placement": show_placement(misfit.use.placement)} if misfit.use else {}),
                }
        return None

    def simulate(self, arguments: SimulateArguments) -> Shape:
        """Say what would become of a pod if it were submitted now; its gang is thought of whole."""
        pod = self._pods.read(_named(arguments.pod))
        if pod is None:
            raise RequestError.at("pod", "asks for no leaf cells, so that we have no say in it")
        rules = self._by_rules(pod, arguments)
        request = self._to_request(pod)
        names = arguments.nodes if arguments.nodes is not None else self._cluster.nodes
        nodes = dict.fromkeys(map(NodeName, names))
        decision = self._cluster.engine.plan(request, candidate_nodes=nodes)
        shape = show_decision(decision)
        shape["victimPods"] = [
            victim.display_name
            for gang in getattr(decision, "victims", ())
            for uid in self._cluster.members.of_gang(gang)
            if (victim := self._pods.get(uid)) is not None
        ]
        return {**shape, "rules": rules}

    def _by_rules(self, pod: ManagedPod, arguments: SimulateArguments) -> Shape:
        """Which rules would touch it; what its submitter holds already is the webhook's secret."""
        rules, classes = self._policies.policy.rules, self._policies.policy.classes
        submission = Submission(
            user=UserName(arguments.user),
            groups=tuple(map(GroupName, arguments.groups)),
            vc=pod.vc,
            requested_class=classes.resolve(pod.class_name, path="pod.spec.priorityClassName"),
            gang=pod.gang.key,
            gang_size=pod.gang.size or 1,
            leaf_count=pod.gang_leaf_count or pod.leaf_count,
            leaf_type=pod.leaf_type,
            labels=pod.labels,
        )
        judged: RuleDecision = rules.decide(submission, usage=None, classes=classes)
        return {
            "outcome": judged.outcome,
            "class": judged.final_class,
            "hits": [hit.number for hit in judged.hits],
            "explanation": list(judged.explain()),
        }

    def _state(self, pod: ManagedPod) -> str:
        if pod.node is not None:
            return "bound"
        if self._cluster.has_member(pod.uid):
            return "placed"
        if pod.is_gated:
            return _QUEUED
        return "waiting" if self._waiting.get(pod.uid) else "not asked about yet"

    def _siblings(self, pod: ManagedPod) -> list[Shape]:
        return [
            {"pod": other.display_name, "state": self._state(other), "node": other.node}
            for other in self._pods.of_gang(pod.gang.key)
            if other.uid != pod.uid
        ]

    async def _decisions(self, pod: ManagedPod) -> Shape:
        """What the log knows; why a pod waits is known without it, too."""
        try:
            records = await self._log.recent(_DECISIONS, subject=str(pod.gang.key))
        except BackendError as exc:
            return {"decisions": [], "problem": f"the log cannot be read now: {exc}"}
        return {"decisions": [show_record(record) for record in records]}


def _named(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod that was never created has no UID, and perhaps no name."""
    metadata = pod.get("metadata")
    told = metadata if isinstance(metadata, dict) else {}
    return {**pod, "metadata": {"name": "simulated", **told, "uid": "simulated"}}
