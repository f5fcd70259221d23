"""Reviews of new pods: identify the submitter, decide the class, charge, record, respond.

Fails closed on a pod that is invalid, and open on an unavailable ledger: then the response carries
a warning (`webhook.admission.admitter`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kube.admission.pod_groups import by_labels
from kube.admission.pod_request import (
    PodRequest,
    build_pod_request,
    without_unlisted_default,
)
from kube.admission.pod_shapes import fix_leaf_cells, shape_only
from kube.admission.possibility import Possibility
from kube.api.client import KubeClient
from kube.lives.pod_holds import check_hold
from kube.lives.pod_swaps import check_no_swap
from kube.lives.run_limits import check_no_deadline
from kube.lives.start_wishes import check_start_by
from kube.read.leaf_demand import is_matched
from kube.read.managed_pod import ManagedPod
from kube.read.pod_groups import PodGroup
from kube.read.pods import read_pod
from kube.shaping.shaper import Shaped
from policy.admission.charge_request import ChargeRequest
from policy.admission.gang_decision import GangDecision
from policy.errors import RequestError
from policy.policy import Policy
from policy.rules.decision import Outcome
from policy.submission import ClassName
from service.clock import Clock
from state.nodes.node_facts import NodeFacts
from webhook.admission.admitter import Admitter
from webhook.admission.start_outlook import StartOutlook
from webhook.cluster_view import ClusterView
from webhook.records.decision_recorder import DecisionRecorder
from webhook.responses.pod_response import respond_shaped, respond_to_pod, respond_with
from webhook.reviews.group_search import find_group
from webhook.reviews.live_members import check_room
from webhook.reviews.pod_workloads import PodWorkloads
from webhook.reviews.preemption_advice import Advice
from webhook.reviews.unknown_marks import warn_of_unknown
from webhook.reviews.young_namespaces import YoungNamespaces
from webhook.wire import ALLOWED, ReviewRequest, ReviewResponse

CheckNode = Callable[[ReviewRequest, ManagedPod], None]
"""Raises RequestError if the user of a review may not choose the node of a pod."""


class PodReviews:
    """Reviews pods."""

    def __init__(
        self,
        *,
        view: ClusterView,
        client: KubeClient,
        admitter: Admitter,
        recorder: DecisionRecorder,
        check_node: CheckNode,
        facts: NodeFacts,
        clock: Clock,
        gates_all: bool,
    ) -> None:
        """`gates_all` has every gang wait for the planner; one over quota waits in any case."""
        self._view = view
        self._client = client
        self._admitter = admitter
        self._recorder = recorder
        self._check_node = check_node
        self._possibility = Possibility(lambda: facts.capacity, preview=admitter.preview)
        self.outlook = StartOutlook(None, clock=clock)
        """Says when gangs would start."""
        self._clock = clock
        self._workloads = PodWorkloads(client, clock=clock)
        self.settle_namespace = YoungNamespaces(client, view.namespaces, clock=clock).settle
        self._gates_all = gates_all

    async def shape(self, review: ReviewRequest) -> ReviewResponse:
        """Shape a pod that asks for no leaf cells, in a namespace that opts in.

        A shape may give it leaf cells; then it is decided like any other. Raises RequestError and
        ConflictError.
        """
        if review.operation != "CREATE" or review.object is None:
            return ALLOWED
        await self.settle_namespace(review.namespace)
        if self.read_pod(review, self._fix_cells(review, review.object)) is not None:
            return await self.mutate(review)
        return respond_shaped(review.object, self._shape_only(review, review.object))

    async def mutate(self, review: ReviewRequest) -> ReviewResponse:
        """Decide the class of a pod that is being created, and write it into the pod.

        Raises RequestError and ConflictError.
        """
        if review.operation != "CREATE" or review.object is None:
            return ALLOWED
        await self.settle_namespace(review.namespace)
        try:
            obj = self._fix_cells(review, review.object)
            obj = await self._workloads.with_workload(obj, namespace=review.namespace)
            pod = self.read_pod(review, obj)
            if pod is None:
                is_fixed = is_matched(review.object)  # a shape took its leaf cells away
                shaped = self._shape_only(review, review.object) if is_fixed else Shaped()
                return respond_shaped(review.object, shaped)
            self._check_node(review, pod)
            group = await find_group(self._view.pod_groups, pod)
            pod = self.read_pod(review, by_labels(obj, group)) or pod
            policy = self._view.policies.policy
            request = _to_request(review, review.object, pod=pod, group=group, policy=policy)
            # What a trusted controller creates was checked when its workload was.
            is_checked = policy.identity.is_trusted(review.user.username)
            if not is_checked:
                check_no_deadline(review.object)
            self._admitter.check_forms(request.charge)
            never = self._possibility.check(request, are_alike=False, may_refuse=not is_checked)
            decision = await self._decide(
                request.charge, is_dry_run=review.dry_run, is_charged=not pod.is_helper
            )
            if decision.is_running:
                await check_room(self._client, request.pod)
        except RequestError:
            self._recorder.note_invalid()
            raise
        told = self._when(request, decision) if decision.is_new else ()
        if not is_checked:
            told = (*told, *warn_of_unknown(review.object))
        return respond_to_pod(
            review.object,
            asked=obj,
            pod=request.pod,
            request=request.charge,
            decision=decision,
            shaped=replace(request.shaped, warnings=(*request.shaped.warnings, *never, *told)),
            gates_all=self._gates_all,
        )

    def preview(
        self,
        review: ReviewRequest,
        obj: Mapping[str, Any],
        *,
        are_alike: bool,
        advise: Callable[[ClassName, str], Advice],
    ) -> ReviewResponse:
        """Return whether a pod would be refused, and the warnings it would get, without any effect.

        `are_alike` says that all members of its gang are like it; `advise` says what its workload
        gets and is told, given the class that the pod would get and the shape that lets disruptions
        be ignored. The patch is one of the workload. Raises RequestError for a pod that is invalid.
        """
        pod = self.read_pod(review, self._fix_cells(review, obj))
        if pod is None:
            return ReviewResponse(is_allowed=True, warnings=self._shape_only(review, obj).warnings)
        self._check_node(review, pod)
        policy = self._view.policies.policy
        request = _to_request(review, obj, pod=pod, group=None, policy=policy)
        never = self._possibility.check(request, are_alike=are_alike, may_refuse=True)
        self._admitter.check_forms(request.charge)
        decision = self._admitter.preview(request.charge)
        advice = advise(decision.gang_class, request.shaped.ignores_disruptions)
        told = (*self._when(request, decision), *warn_of_unknown(obj))
        warnings = (*request.shaped.warnings, *never, *advice.warnings, *told)
        return respond_with(decision, patch=advice.patch, warnings=warnings)

    async def decide_for_group(
        self, review: ReviewRequest, obj: Mapping[str, Any], group: PodGroup, *, is_charged: bool
    ) -> GangDecision | None:
        """Decide the class of a PodGroup by a pod that it will have; None if it is not managed.

        Raises RequestError and ConflictError.
        """
        pod = self.read_pod(review, by_labels(self._fix_cells(review, obj), group))
        if pod is None or pod.submitter is None:
            return None
        policy = self._view.policies.policy
        request = _to_request(review, obj, pod=pod, group=group, policy=policy)
        charge = replace(request.charge, fixed_class=None, is_group=True)
        # A PodGroup that is no gang is not charged; its pods are, one by one.
        is_preview = review.dry_run or group.min_size is None or not is_charged
        return await self._decide(charge, is_dry_run=is_preview)

    def _when(self, request: PodRequest, decision: GangDecision) -> Sequence[str]:
        """Say when a gang would start, if it is admitted and needs leaf cells."""
        pod = request.pod
        leaf_cells = pod.leaf_count * (pod.gang.size or 1)
        if decision.outcome is not Outcome.ADMITTED or not leaf_cells:
            return ()
        return self.outlook.warn(
            vc=pod.vc,
            leaf_type=pod.leaf_type,
            class_name=decision.gang_class,
            leaf_cells=leaf_cells,
            start_by=pod.start_by,
        )

    def _fix_cells(self, review: ReviewRequest, obj: Mapping[str, Any]) -> Mapping[str, Any]:
        labels, policy = self._view.namespaces.labels(review.namespace), self._view.policies.policy
        return fix_leaf_cells(obj, sender=review.user, policy=policy, namespace_labels=labels)

    def _shape_only(self, review: ReviewRequest, obj: Mapping[str, Any]) -> Shaped:
        labels, policy = self._view.namespaces.labels(review.namespace), self._view.policies.policy
        return shape_only(obj, sender=review.user, policy=policy, namespace_labels=labels)

    def read_pod(self, review: ReviewRequest, obj: Mapping[str, Any]) -> ManagedPod | None:
        """Read a pod; None if it is not managed. Raises RequestError if it is invalid."""
        labels = self._view.namespaces.labels(review.namespace)
        pod = read_pod(obj, namespace_labels=labels, request_uid=review.uid)
        if pod is None:
            return None
        check_hold(obj)
        check_no_swap(obj)
        check_start_by(obj)
        classes = self._view.policies.policy.classes
        return without_unlisted_default(
            pod, classes=classes, is_default=self._view.priorities.is_default
        )

    async def _decide(
        self, request: ChargeRequest, *, is_dry_run: bool, is_charged: bool = True
    ) -> GangDecision:
        """Decide about a pod; a helper follows its gang, and does not decide for it."""
        began = self._clock.monotonic()
        try:
            decision = (
                await self._admitter.admit(request)
                if is_charged and not is_dry_run
                else self._admitter.preview(request)
            )
        except ValueError as exc:
            # A value that Postgres cannot store, or the decision id of another gang.
            raise RequestError.at("", f"the pod cannot be charged: {exc}") from exc
        seconds = self._clock.monotonic() - began
        self._recorder.record(decision, request, is_dry_run=is_dry_run, seconds=seconds)
        return decision


def _to_request(
    review: ReviewRequest,
    obj: Mapping[str, Any],
    *,
    pod: ManagedPod,
    group: PodGroup | None,
    policy: Policy,
) -> PodRequest:
    return build_pod_request(
        obj, sender=review.user, request_uid=review.uid, pod=pod, group=group, policy=policy
    )
