"""What the webhook would decide about a pod: identity, rules, quotas, and what can never start."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from extender.feeds.pod_feed import PodSink
from extender.simulate.standing import read_standing
from extender.simulate.submitted import (
    SimulatedUser,
    as_stored,
    as_submitted,
    check_node_rules,
)
from kube.admission.alternatives import check_forms
from kube.admission.decision_patch import decision_patch
from kube.admission.live_count import check_count
from kube.admission.patches import apply_patch
from kube.admission.pod_groups import by_labels
from kube.admission.pod_request import PodRequest, build_pod_request, without_unlisted_default
from kube.admission.pod_shapes import fix_leaf_cells
from kube.admission.possibility import Possibility
from kube.api.client import KubeClient, KubeError
from kube.follow import priority_classes
from kube.follow.namespaces import NamespaceSink
from kube.follow.pod_groups import PodGroupFollower
from kube.follow.policies import PolicySink
from kube.follow.priority_classes import PriorityClassSink
from kube.read.gangs import GangForm
from kube.read.managed_pod import ManagedPod
from kube.read.pod_groups import PodGroup
from kube.read.pods import read_pod
from policy.admission.gang_decision import POD_GROUP_PATH, GangDecision
from policy.admission.preview import decide
from policy.errors import RequestError
from policy.policy import Policy
from policy.rules.decision import Outcome
from policy.wording import describe, quote
from state.ledger.ledger import Ledger
from state.nodes.node_facts import NodeFacts

_A_TEMPLATE: Final = "give one of its pods, with the metadata and the spec of the pod template"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedAdmission:
    """What the webhook would answer, and the pod that would be stored."""

    decision: GangDecision | None = None
    refusal: str | None = None
    """Why the pod would be refused."""
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """What could not be read, so that the answer may be wrong."""
    stored: Mapping[str, Any] | None = None
    """The pod as it would be stored; None if it is refused."""


class AdmissionSimulator:
    """Decides about pods as the webhook does; changes nothing."""

    def __init__(
        self,
        *,
        client: KubeClient,
        policies: PolicySink,
        groups: PodGroupFollower,
        pods: PodSink,
        namespaces: NamespaceSink,
        facts: NodeFacts,
        ledger: Ledger | None,
    ) -> None:
        self._client = client
        self._policies = policies
        self._groups = groups
        self._pods = pods
        self._namespaces = namespaces
        self._facts = facts
        self._ledger = ledger

    async def admit(self, pod: Mapping[str, Any], user: SimulatedUser) -> SimulatedAdmission:
        """Decide about a pod. Raises RequestError for one that is invalid or not managed."""
        if (kind := pod.get("kind", "Pod")) != "Pod":
            raise RequestError.at("pod.kind", f"must be Pod, not {describe(kind)}: {_A_TEMPLATE}")
        problems: list[str] = []
        priorities = await self._read_priorities(problems)
        sent = as_submitted(pod, priorities)
        read_pod(sent, reads_all=True)  # raises if it is invalid
        check_node_rules(sent)
        try:
            admission = await self._admit(sent, user, priorities, problems)
        except RequestError as exc:
            return SimulatedAdmission(refusal=str(exc), problems=tuple(problems))
        if admission is None:
            raise RequestError.at("pod", "asks for no leaf cells, so there is nothing to simulate")
        return admission

    async def _admit(
        self,
        sent: Mapping[str, Any],
        user: SimulatedUser,
        priorities: PriorityClassSink,
        problems: list[str],
    ) -> SimulatedAdmission | None:
        """Decide about a valid pod; None if it asks for no leaf cells.

        Raises RequestError if it would be refused.
        """
        policy = self._policies.policy
        labels = self._namespaces.labels(sent["metadata"].get("namespace", ""))
        obj = fix_leaf_cells(sent, sender=user, policy=policy, namespace_labels=labels)
        read = self._read(obj, policy, priorities)
        if read is None:
            return None
        group = await self._find_group(read)
        read = self._read(by_labels(obj, group), policy, priorities) or read
        request = build_pod_request(
            sent, sender=user, request_uid=str(uuid4()), pod=read, group=group, policy=policy
        )
        decision, warnings = await self._decide(request, user, problems)
        if decision.outcome is Outcome.REFUSED:
            refusal = decision.admission.format_refusal()
            told = tuple(problems)
            return SimulatedAdmission(decision=decision, refusal=refusal, problems=told)
        return SimulatedAdmission(
            decision=decision,
            warnings=(*decision.format_warnings(), *warnings),
            problems=tuple(problems),
            stored=_store(sent, obj, request, decision, priorities),
        )

    async def _read_priorities(self, problems: list[str]) -> PriorityClassSink:
        sink = PriorityClassSink()
        try:
            found = await self._client.request("GET", priority_classes.PATH)
        except KubeError as exc:
            problems.append(f"PriorityClasses cannot be read: {exc}")
        else:
            sink.replace(found.get("items") or ())
        return sink

    def _read(
        self, obj: Mapping[str, Any], policy: Policy, priorities: PriorityClassSink
    ) -> ManagedPod | None:
        pod = self._pods.read(dict(obj))
        if pod is None or pod.is_helper:
            return None
        is_default, pod = priorities.is_default, pod.in_form(0)
        return without_unlisted_default(pod, classes=policy.classes, is_default=is_default)

    async def _find_group(self, pod: ManagedPod) -> PodGroup | None:
        """Return a pod's PodGroup, if it needs one to know its size."""
        form, key = pod.gang.form, pod.gang.key
        if form not in self._groups.sinks or pod.gang.size is not None:
            return None
        known = self._groups.find(pod)
        if known is not None:
            return known
        try:
            return await self._groups.read(form, key)
        except KubeError as exc:
            if exc.is_missing and form is GangForm.NATIVE:
                message = f"PodGroup {quote(key.name)} does not exist; create it before its pods"
                raise RequestError.at(POD_GROUP_PATH, message) from exc
            return None

    async def _decide(
        self, request: PodRequest, user: SimulatedUser, problems: list[str]
    ) -> tuple[GangDecision, tuple[str, ...]]:
        """Decide, and warn of what can never start; RequestError if the pod would be refused."""
        standing = await read_standing(self._ledger, request.charge)
        if standing.problem is not None:
            problems.append(standing.problem)
        await self._facts.refresh_if_old()
        if standing.earlier is None:
            check_forms(request.charge, standing.occupancy)
        made = decide(
            request.charge,
            usage=standing.usage,
            occupancy=standing.occupancy,
            earlier=standing.earlier,
        ).decision
        possibility = Possibility(lambda: self._facts.capacity, preview=lambda _: made)
        # What a trusted controller creates was checked when its workload was.
        is_checked = request.charge.policy.identity.is_trusted(user.username)
        never = possibility.check(request, are_alike=False, may_refuse=not is_checked)
        if made.is_running:
            check_count(request.pod, self._count_live(request.pod))
        return made, (*request.shaped.warnings, *never)

    def _count_live(self, pod: ManagedPod) -> int:
        gang = pod.gang.key
        members = (*self._pods.of_gang(gang), *self._pods.helpers.of_gang(gang))
        return sum(not (one.is_deleting or one.is_finished) for one in members)


def _store(
    sent: Mapping[str, Any],
    asked: Mapping[str, Any],
    request: PodRequest,
    decision: GangDecision,
    priorities: PriorityClassSink,
) -> dict[str, Any]:
    """Return the pod with the decision in it, held by the gate."""
    patch = decision_patch(
        sent,
        asked=asked,
        pod=request.pod,
        request=request.charge,
        decision=decision,
        shaped=request.shaped,
        gates_all=True,
    )
    return as_stored(apply_patch(sent, patch), decision.final_class, priorities)
