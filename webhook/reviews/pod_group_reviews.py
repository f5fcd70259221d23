"""Reviews of PodGroups: decide the class of a group's pods when the group is created.

A PodGroup of the Job controller has a Job, whose template says what its pods ask for and who
submitted them. It is decided and charged like the first of those pods, which then follow.

Other PodGroups do not say what their pods ask for. They are previewed as if each pod asked for one
leaf cell; pods that would then get another class are refused later, with the reason. Only groups in
a class of the Classes document are touched, since others may not use leaf cells at all.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from kube import marks
from kube.admission import patches
from kube.admission.pod_request import is_unlisted_default
from kube.api.client import KubeClient, KubeError
from kube.read.pod_groups import API_VERSION, KIND, PodGroup, read_pod_group
from kube.values.objects import items, mapping, marks_of
from policy.admission.charge_request import ChargeRequest
from policy.admission.gang_decision import GangDecision
from policy.submission import DEFAULT_VC, ClassName, Submission, UserName, VcName
from webhook.admission.admitter import Admitter
from webhook.cluster_view import ClusterView
from webhook.ledger_access.time_budget import KUBE_SECONDS, within_budget
from webhook.responses.pod_response import respond_with
from webhook.reviews.pod_reviews import PodReviews
from webhook.reviews.pod_templates import find_templates
from webhook.wire import ALLOWED, ReviewRequest, ReviewResponse

_OWNER = {"apiVersion": "batch/v1", "kind": "Job"}


def is_pod_group(obj: Mapping[str, Any]) -> bool:
    """Tell whether an object is a native PodGroup."""
    return obj.get("apiVersion") == API_VERSION and obj.get("kind") == KIND


class PodGroupReviews:
    """Reviews PodGroups."""

    def __init__(
        self,
        *,
        view: ClusterView,
        admitter: Admitter,
        pods: PodReviews,
        client: KubeClient,
    ) -> None:
        self._policies = view.policies
        self._priorities = view.priorities
        self._namespaces = view.namespaces
        self._admitter = admitter
        self._pods = pods
        self._client = client

    async def mutate(self, review: ReviewRequest, obj: Mapping[str, Any]) -> ReviewResponse:
        """Give a new PodGroup the class that its pods must have.

        Raises RequestError and ConflictError.
        """
        if review.operation != "CREATE":
            return ALLOWED  # its class cannot be changed any more
        group = read_pod_group(obj, namespace=review.namespace)
        if self._policies.policy.identity.is_trusted(review.user.username):
            decision = await self._decide_by_job(review, obj, group)
        else:
            decision = self._preview(review, obj, group)
        if decision is None:
            return ALLOWED
        return respond_with(decision, patch=patches.class_patch(obj, decision.final_class))

    def _preview(
        self, review: ReviewRequest, obj: Mapping[str, Any], group: PodGroup
    ) -> GangDecision | None:
        classes = self._policies.policy.classes
        if group.class_name is None or not classes.is_listed(group.class_name):
            return None
        vc = self._vc(review, obj)
        request = self._build_request(review, group, vc=vc, class_name=group.class_name)
        return self._admitter.preview(request)

    async def _decide_by_job(
        self, review: ReviewRequest, obj: Mapping[str, Any], group: PodGroup
    ) -> GangDecision | None:
        """Decide about the pods of a Job; None if the Job or its template is not found."""
        job = await self._find_job(review, obj)
        policy = self._policies.policy
        kinds = policy.identity.find_templates(
            api_version=_OWNER["apiVersion"], kind=_OWNER["kind"]
        )
        templates = find_templates(job, kinds)
        if not templates:
            return None
        pod = templates[0].to_pod(review, {})
        pod["spec"] = {**pod["spec"], "schedulingGroup": {"podGroupName": group.key.name}}
        named = group.class_name
        is_default = self._priorities.is_default
        if is_unlisted_default(named, classes=policy.classes, is_default=is_default):
            named = None
        if named is None:
            named = policy.classes.default or None
        return await self._pods.decide_for_group(review, pod, replace(group, class_name=named))

    async def _find_job(self, review: ReviewRequest, obj: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the Job that owns a PodGroup; an empty one if there is none, or no answer."""
        for owner in items(mapping(obj.get("metadata")).get("ownerReferences")):
            if _OWNER.items() <= owner.items() and owner.get("controller") is True:
                path = f"/apis/batch/v1/namespaces/{review.namespace}/jobs/{owner.get('name')}"
                try:
                    async with within_budget(KUBE_SECONDS):
                        return await self._client.request("GET", path)
                except (KubeError, TimeoutError):
                    return {}  # its pods are refused later if they would get another class
        return {}

    def _build_request(
        self, review: ReviewRequest, group: PodGroup, *, vc: VcName, class_name: ClassName
    ) -> ChargeRequest:
        policy, user = self._policies.policy, UserName(review.user.username)
        groups = policy.identity.groups_of(user, review.user.groups)
        submission = Submission(
            user=user,
            groups=groups,
            vc=vc,
            requested_class=class_name,
            gang=group.key,
            gang_size=group.min_size or 1,
            leaf_count=group.min_size or 1,
        )
        return ChargeRequest(
            submission=submission,
            group=policy.quotas.find(
                user,
                groups,
                named=None,
                path="",
                by_identity=policy.identity.groups_of(user, ()),
            ),
            decision=uuid4(),
            policy=policy,
            is_alone=False,
        )

    def _vc(self, review: ReviewRequest, obj: Mapping[str, Any]) -> VcName:
        own = marks_of(obj, "labels").get(marks.VC_LABEL)
        inherited = self._namespaces.labels(review.namespace).get(marks.VC_LABEL)
        return VcName(str(own or inherited or DEFAULT_VC))
