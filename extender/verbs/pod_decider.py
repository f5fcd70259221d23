"""Reads the pod that a verb is about, and decides about it.

Nothing is awaited between plan and apply, so that the event loop is the single writer that the
engine needs.
"""

from collections.abc import Collection, Mapping
from typing import Any

from extender.cells.model import Decision, ReasonCode, Wait
from extender.cells.views.listings import Stepwise
from extender.cluster.cluster import Cluster
from extender.cluster.journal import DecisionContext
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import ToRequest, to_single_request
from extender.outcomes.outcomes import EndedBy, Outcomes
from kube.read.managed_pod import ManagedPod
from policy.errors import RequestError
from policy.submission import NodeName, PodUid
from service.clock import Clock
from state.log.records import RowKind


class PodDecider:
    """Decides about single pods, for kube-scheduler."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        to_request: ToRequest,
        outcomes: Outcomes,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._to_request = to_request
        self._outcomes = outcomes
        self._clock = clock

    def read(self, obj: Mapping[str, Any]) -> ManagedPod | None:
        """Read the pod of a request; the feed's version of it, if the feed has one.

        None for a pod that asks for no leaf cells.
        """
        uid = read_uid(obj)
        pod = self._pods.get(uid) or self._pods.read(dict(obj))
        if pod is not None and pod.node is not None:
            raise RequestError.at("Pod", f"pod is already bound to node {pod.node}")
        if self._pods.has_ended(uid) or (pod is not None and pod.is_finished):
            raise RequestError.at("Pod", "pod has ended or was deleted")
        if pod is not None and not pod.uid:
            raise RequestError.at("Pod.metadata.uid", "is required")
        return pod

    def prepare_stepwise(self, obj: Mapping[str, Any]) -> Stepwise[None]:
        """Prepare a decision about the pod of a request, if that takes long."""
        pod = self.read(obj)
        if pod is not None and not pod.is_helper:
            yield from self._cluster.prepare_stepwise(self._to_request(pod))

    def decide(
        self,
        pod: ManagedPod,
        candidate_nodes: Collection[NodeName],
        *,
        kind: RowKind,
        ended_by: EndedBy | None = None,
    ) -> Decision:
        """Decide about a pod, apply the decision and record it.

        `ended_by` is the program that ends victims. If it is None, a decision to preempt reserves
        no cells.
        """
        request = self._to_request(pod)
        context = DecisionContext(
            kind=kind,
            now=self._clock.monotonic(),
            applies_preemption=ended_by is not None,
            pod=pod.display_name,
        )
        decision = self._cluster.decide(request, candidate_nodes=candidate_nodes, context=context)
        if _is_beyond_size(pod, decision):
            single = to_single_request(request, pod)
            decision = self._cluster.decide(
                single, candidate_nodes=candidate_nodes, context=context
            )
        self._outcomes.pod_decided(pod, decision, offered=candidate_nodes, ended_by=ended_by)
        return decision


def read_uid(obj: Mapping[str, Any]) -> PodUid:
    """Return the UID of a pod; empty if it has none."""
    metadata = obj.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    return PodUid(uid) if isinstance(uid, str) else PodUid("")


def _is_beyond_size(pod: ManagedPod, decision: Decision) -> bool:
    """Whether a gang has all the members that its PodGroup asks for: there may be more."""
    return (
        pod.gang.size is None
        and isinstance(decision, Wait)
        and decision.reason.code is ReasonCode.GANG_FULL
    )
