"""Explains why a pod waits or where it runs, and simulates pods that do not exist yet."""

from itertools import chain
from typing import Any, Final

from pydantic import Field

from extender.cells.reason_kinds import WaitsFor, waits_for
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import ToRequest
from extender.inspection.json_views import (
    JsonObject,
    if_any,
    show_decision,
    show_end,
    show_placement,
    show_record,
)
from extender.inspection.waiting_view import WaitingView
from extender.outcomes.gang_ends import GangEnds
from extender.planning.class_raiser import ClassRaiser
from kube.follow.policies import PolicySink
from kube.read.managed_pod import ManagedPod
from policy.errors import BackendError, RequestError
from policy.rules.decision import RuleDecision
from policy.submission import GroupName, NodeName, Submission, UserName
from service.bodies import Body
from state.log.log import DecisionLog

_ANONYMOUS: Final = "system:anonymous"
_DECISIONS: Final = 20
_SEARCHED: Final = 500
_MOST_PARTS: Final = 4
_QUEUED: Final = "queued"
_WAITING: Final = "waiting"
_PLACED: Final = "placed"
_REFUSED: Final = "refused"
_UNPLACED: Final = (_QUEUED, _WAITING, _REFUSED)


class SimulateArguments(Body):
    """A pod to simulate, and its submitter."""

    pod: dict[str, Any] = Field(description="The pod, as given to kubectl.")
    user: str = Field(default=_ANONYMOUS, description="The user who would create it.")
    groups: list[str] = Field(
        default=[], description="The groups of the user, as the API server knows them."
    )
    nodes: list[str] | None = Field(
        default=None,
        description="The candidate nodes of kube-scheduler; by default all nodes, also those "
        "that lack CPU or memory for the pod.",
    )


class Explainer:
    """Explains single pods; changes nothing."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        ends: GangEnds,
        waiting: WaitingView,
        policies: PolicySink,
        to_request: ToRequest,
        raises: ClassRaiser | None,
        log: DecisionLog,
    ) -> None:
        """`raises` knows the gangs beyond quota; None without a ledger."""
        self._cluster = cluster
        self._pods = pods
        self._waiting = waiting
        self._policies = policies
        self._to_request = to_request
        self._raises = raises
        self._ends = ends
        self._log = log

    async def explain(self, namespace: str, name: str) -> JsonObject | None:
        """Explain one pod, or a gang by its name or that of its workload; None if it is unknown."""
        pods = [*chain(self._pods, self._pods.helpers.pods.values())]
        pod = next((p for p in pods if (p.namespace, p.name) == (namespace, name)), None)
        if pod is not None:
            return await self._explain_pod(pod)
        members = [p for p in pods if p.namespace == namespace and name in _names(p)]
        if members:
            # One that waits says most about its gang.
            pod = next((p for p in members if self._state(p) in _UNPLACED), members[0])
            end = self._ends.find(f"{namespace}/{name}")
            return await self._explain_pod(pod) | ({"ended": show_end(end)} if end else {})
        invalid = self._explain_invalid(namespace, name)
        return invalid or await self._explain_gone(f"{namespace}/{name}")

    async def _explain_pod(self, pod: ManagedPod) -> JsonObject:
        member = self._cluster.members.get(pod.uid)
        state = self._state(pod)
        waiting = self._waiting.of_pod(pod) if state in _UNPLACED else None
        shape: JsonObject = {
            "pod": pod.display_name,
            "uid": pod.uid,
            "gang": str(pod.gang.key),
            "gangForm": pod.gang.form,
            **if_any("workload", str(pod.workload) if pod.workload else None),
            "vc": pod.vc,
            "class": pod.charged_class,
            **self._standing(pod),
            "leafCells": pod.leaf_count,
            "state": state,
            "ending": pod.is_deleting,
        }
        if state == _QUEUED and waiting is not None:
            shape["queued"] = {"reason": waiting.reason.text}
        if member is not None:
            shape["priority"] = member.request.priority
            shape["foreign"] = member.is_foreign
            shape["owner"] = pod.charged_user
            shape["placement"] = show_placement(member.placement)
        held = self._waiting.held_reason(pod.gang.key) if state == _PLACED else None
        if held is not None:
            shape["held"] = {"reason": held.text}
        if waiting is not None:
            shape["waiting"] = self._waiting.show(waiting, self._waiting.places())
        shape["siblings"] = self._siblings(pod)
        return shape | await self._decisions(str(pod.gang.key))

    async def _explain_gone(self, name: str) -> JsonObject | None:
        """Explain a gang without pods, by the name of it, of its workload or of a pod it had."""
        end, known = self._ends.find(name), self._ends.gang_of(name)
        gang = str(known) if known is not None else await self._find_gang(name)
        decisions = await self._decisions(gang)
        if known is None and not decisions["decisions"]:
            return None
        ended = {"ended": show_end(end)} if end is not None else {}
        return {"gang": gang, "state": "gone"} | ended | decisions

    async def _find_gang(self, name: str) -> str:
        """Find the gang of a pod that ended before this leader began, in the log.

        Controllers name pods after the workload, which often names the gang: each part of the name
        may be the gang's. The rows about that gang must name the pod.
        """
        namespace, _, rest = name.partition("/")
        for _ in range(min(rest.count("-"), _MOST_PARTS)):
            rest = rest.rpartition("-")[0]
            gang = f"{namespace}/{rest}"
            for row in (await self._decisions(gang, most=_SEARCHED))["decisions"]:
                if row["details"].get("pod") == name:
                    return gang
        return name

    def foreign(self) -> dict[str, JsonObject]:
        """Show the pods that use leaf cells and that Cellgate did not place, by name."""
        members = self._cluster.members
        found = {
            pod.display_name: {
                "pod": pod.display_name,
                "uid": pod.uid,
                "owner": pod.charged_user,
                "vc": pod.vc,
                "class": pod.class_name,
                "protected": pod.is_protected,
                "leafCells": pod.leaf_count,
                "node": pod.node,
            }
            for pod in self._pods
            if members.is_foreign(pod.uid)
        }
        uses = (pod.use for pod in self._pods.invalid)
        return found | {
            use.foreign.name: {
                "pod": use.foreign.name,
                "uid": use.request.member,
                "owner": use.foreign.owner,
                "protected": use.foreign.is_protected,
                "leafCells": use.request.leaf_count,
                "node": use.placement.node,
            }
            for use in uses
            if use is not None and use.foreign is not None
        }

    def _standing(self, pod: ManagedPod) -> JsonObject:
        """Say that a gang was raised above its pods' class, or what it waits for to be raised."""
        if pod.effective_class is not None:
            return {"podClass": pod.class_name}
        why = self._raises.explain(pod) if self._raises is not None else None
        return {} if why is None else {"overQuota": why}

    def _explain_invalid(self, namespace: str, name: str) -> JsonObject | None:
        """Say what is wrong with a pod that asks for leaf cells and is not valid."""
        for invalid in self._pods.invalid:
            if (invalid.namespace, invalid.name) == (namespace, name):
                return {
                    "pod": f"{namespace}/{name}",
                    "uid": invalid.uid,
                    "state": "not understood",
                    "problem": invalid.problem,
                    "foreign": invalid.use is not None,
                    **({"placement": show_placement(invalid.use.placement)} if invalid.use else {}),
                }
        return None

    def simulate(self, arguments: SimulateArguments) -> JsonObject:
        """Say what would happen to a pod if it were submitted now, with its whole gang."""
        pod = self._pods.read(_named(arguments.pod))
        if pod is None:
            raise RequestError.at("pod", "asks for no leaf cells, so Cellgate does not manage it")
        rules = self._by_rules(pod, arguments)
        request = self._to_request(pod)
        names = arguments.nodes if arguments.nodes is not None else self._cluster.nodes
        nodes = dict.fromkeys(map(NodeName, names))
        decision = self._cluster.what_if(request, candidate_nodes=nodes)
        shape = show_decision(decision)
        shape["victimPods"] = [
            victim.display_name
            for gang in getattr(decision, "victims", ())
            for uid in self._cluster.members.of_gang(gang)
            if (victim := self._pods.get(uid)) is not None
        ]
        return {**shape, "rules": rules}

    def _by_rules(self, pod: ManagedPod, arguments: SimulateArguments) -> JsonObject:
        """Say which rules would apply; the usage of the submitter is not taken into account."""
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
        if self._cluster.has_place(pod.uid) or (pod.is_helper and pod.is_released):
            return _PLACED
        waiting = self._waiting.of_pod(pod)
        if waiting is not None and waits_for(waiting.reason.code) is WaitsFor.OWNER:
            return _REFUSED
        if pod.is_gated:
            return _QUEUED
        return _WAITING if waiting else "not asked about yet"

    def _siblings(self, pod: ManagedPod) -> list[JsonObject]:
        return [
            {"pod": other.display_name, "state": self._state(other), "node": other.node}
            for other in (
                *self._pods.of_gang(pod.gang.key),
                *self._pods.helpers.of_gang(pod.gang.key),
            )
            if other.uid != pod.uid
        ]

    async def _decisions(self, gang: str, *, most: int = _DECISIONS) -> JsonObject:
        """Show what the log has; the rest of the explanation does not need it."""
        try:
            records = await self._log.recent(most, subject=gang)
        except BackendError as exc:
            return {"decisions": [], "problem": f"the decision log cannot be read now: {exc}"}
        return {"decisions": [show_record(record) for record in records]}


def _names(pod: ManagedPod) -> set[str]:
    """Return the names of a pod's gang and of its workload."""
    return {pod.gang.key.name, pod.workload.name if pod.workload else pod.name}


def _named(pod: dict[str, Any]) -> dict[str, Any]:
    """Give a pod that was never created a UID and, if it has none, a name."""
    metadata = pod.get("metadata")
    told = metadata if isinstance(metadata, dict) else {}
    return {**pod, "metadata": {"name": "simulated", **told, "uid": "simulated"}}
