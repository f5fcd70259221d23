"""Reviews of pods. Mutating: identify, decide, charge, log, answer. Validating: nothing slipped.

Fails closed on what a pod says, and open on what the ledger does not: a pod that makes no sense is
refused; a ledger that does not answer costs a warning (`webhook.admission.admitter`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from kube import marks
from kube.read.charged_gang import charged_gang
from kube.read.pod_groups import PodGroup
from kube.read.pods import GangForm, ManagedPod, read_pod
from policy.errors import ConflictError, RequestError
from policy.policy import Policy
from policy.submission import ClassName, Submission
from policy.wording import quote
from service.clock import Clock
from webhook.admission.admitter import Admitter
from webhook.admission.live_members import Members
from webhook.admission.pod_group_sizes import PodGroups, with_group
from webhook.admission.verdict import Request, Verdict
from webhook.cluster_view import ClusterView
from webhook.reviews.answers import AnswerSettings, build_answer, forget_decision
from webhook.reviews.decision_notes import DecisionNotes
from webhook.reviews.submitter import Submitter, identify
from webhook.shaping.shaper import Shaped, shape_pod
from webhook.wire import ALLOWED, Answer, ReviewRequest, try_again

_GROUP_PATH = f"metadata.labels[{marks.GROUP_LABEL}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A pod in our own words, and what it means for its gang."""

    pod: ManagedPod
    submitter: Submitter
    request: Request
    shaped: Shaped


@dataclass(frozen=True, slots=True)
class Preview:
    """What a pod would get."""

    verdict: Verdict
    warnings: Sequence[str]
    """What shapes would give to it against its author's word."""


class PodReviews:
    """Answers about pods."""

    def __init__(
        self,
        *,
        view: ClusterView,
        groups: PodGroups,
        members: Members,
        admitter: Admitter,
        notes: DecisionNotes,
        clock: Clock,
        settings: AnswerSettings,
    ) -> None:
        self._policies = view.policies
        self._namespaces = view.namespaces
        self._priorities = view.priorities
        self._groups = groups
        self._members = members
        self._admitter = admitter
        self._notes = notes
        self._clock = clock
        self._settings = settings

    async def mutate(self, review: ReviewRequest) -> Answer:
        """Decide the class of a pod that is being created, and write it into the pod."""
        if review.operation != "CREATE" or review.object is None:
            return ALLOWED
        try:
            pod = self.read_plain(review, review.object)
            if pod is None:
                return forget_decision(review.object)
            group = await self._groups.find(pod)
            asked = self._understand(review, review.object, pod, group)
            verdict = await self._decide(asked, is_dry_run=review.dry_run)
            if verdict.is_running:
                await self._members.check_room(asked.pod)
        except RequestError as exc:
            self._notes.note_invalid()
            return Answer(is_allowed=False, message=str(exc))
        except ConflictError as exc:
            return try_again(exc)
        return build_answer(
            review.object,
            asked.pod,
            asked.submitter,
            verdict,
            asked.request,
            shaped=asked.shaped,
            settings=self._settings,
        )

    def preview(self, review: ReviewRequest, obj: Mapping[str, Any]) -> Preview | None:
        """Say what a pod would get, without any effect; None for one that is not managed.

        Raises RequestError for one that makes no sense.
        """
        pod = self.read_plain(review, obj)
        if pod is None:
            return None
        asked = self._understand(review, obj, pod, None)
        return Preview(self._admitter.preview(asked.request), asked.shaped.warnings)

    async def decide_for_group(
        self, review: ReviewRequest, obj: Mapping[str, Any], group: PodGroup
    ) -> Verdict | None:
        """Decide about a PodGroup by a pod that it will have; None for one that is not managed.

        The class of the group is what is decided here. Raises RequestError and ConflictError.
        """
        pod = self.read_plain(review, obj)
        if pod is None or pod.submitter is None:
            return None
        asked = self._understand(review, obj, pod, group)
        asked = replace(asked, request=replace(asked.request, fixed_class=None, is_group=True))
        # A group that is no gang has nothing to be charged for; its pods have, one by one.
        is_dry_run = review.dry_run or group.min_size is None
        return await self._decide(asked, is_dry_run=is_dry_run)

    def read_plain(self, review: ReviewRequest, obj: Mapping[str, Any]) -> ManagedPod | None:
        """Translate a pod, whoever it is from; RequestError if it makes no sense."""
        labels = self._namespaces.labels(review.namespace)
        pod = read_pod(obj, namespace_labels=labels, request_uid=review.uid)
        if pod is None or pod.class_name is None or not self.is_unnamed(pod.class_name):
            return pod
        return replace(pod, class_name=None)

    def is_unnamed(self, class_name: ClassName) -> bool:
        """Tell whether a class is only what Kubernetes gives to whatever names none of ours."""
        classes = self._policies.policy.classes
        is_given = bool(classes.entries) and self._priorities.is_default(class_name)
        return is_given and not classes.is_listed(class_name)

    def _understand(
        self,
        review: ReviewRequest,
        obj: Mapping[str, Any],
        pod: ManagedPod,
        group: PodGroup | None,
    ) -> Asked:
        """Say what a pod means for its gang.

        Raises RequestError for one that asks for what is not the submitter's.
        """
        policy = self._policies.policy
        _check_sender(review)
        _check_hived(pod)
        submitter = identify(pod, review.user, policy.identity)
        policy.identity.check_vc(
            pod.vc, user=submitter.user, groups=submitter.groups, path=_vc_path(pod)
        )
        is_open = pod.gang.size is None
        pod = with_group(pod, group, policy)
        request = _request(pod, submitter, policy=policy, decision=_decision_id(review.uid))
        if is_open and not pod.is_charged_alone:
            own = pod.leaf_count
            request = replace(request, may_grow=True, is_alone=False, member_leaf_count=own)
        if group is not None and pod.gang.form is GangForm.NATIVE:
            request = replace(request, fixed_class=ClassName(group.class_name or ""))
        shapes = policy.shapes.matching(request.submission)
        shaped = shape_pod(obj, shapes, user=submitter.user)
        return Asked(pod=pod, submitter=submitter, request=request, shaped=shaped)

    async def _decide(self, asked: Asked, *, is_dry_run: bool) -> Verdict:
        began = self._clock.monotonic()
        try:
            verdict = (
                self._admitter.preview(asked.request)
                if is_dry_run
                else await self._admitter.admit(asked.request)
            )
        except ValueError as exc:
            # What Postgres will never take, or the id of another gang's decision.
            raise RequestError.at("", f"the pod cannot be charged: {exc}") from exc
        seconds = self._clock.monotonic() - began
        self._notes.note(verdict, asked.request, is_dry_run=is_dry_run, seconds=seconds)
        return verdict


def _request(pod: ManagedPod, submitter: Submitter, *, policy: Policy, decision: UUID) -> Request:
    """Say who asks for what; RequestError for a class that the admins do not know."""
    requested = policy.classes.resolve(pod.class_name, path="spec.priorityClassName")
    user, groups = submitter.user, submitter.groups
    submission = Submission(
        user=user,
        groups=groups,
        vc=pod.vc,
        requested_class=requested,
        gang=charged_gang(pod, decision=str(decision)),
        gang_size=pod.gang.size or 1,
        leaf_count=pod.gang_leaf_count or pod.leaf_count,
        leaf_type=pod.leaf_type,
        labels=pod.labels,
    )
    paying = policy.quotas.find(user, groups, named=pod.charged_group, path=_GROUP_PATH)
    return Request(
        submission=submission,
        group=paying,
        decision=decision,
        policy=policy,
        is_alone=pod.gang.size == 1,
        member_leaf_count=_member_leaf_count(pod),
    )


def _member_leaf_count(pod: ManagedPod) -> int | None:
    is_told = pod.hived is not None and pod.hived.gang is not None
    return None if is_told or pod.gang.size == 1 else pod.leaf_count


def _decision_id(uid: str) -> UUID:
    """The API server names its requests by UUIDs; whoever else may call them otherwise."""
    try:
        return UUID(uid)
    except ValueError:
        return uuid5(NAMESPACE_URL, uid)


def _check_sender(review: ReviewRequest) -> None:
    if not review.user.username:
        raise RequestError.at("userInfo.username", "must be set: nobody can be charged otherwise")


def _check_hived(pod: ManagedPod) -> None:
    """A pod must not get more devices from the kubelet than it asks cells for."""
    if pod.hived is not None and pod.leaf_count < pod.device_count:
        path = f"metadata.annotations[{marks.HIVED_SPEC_ANNOTATION}]"
        asked = f"leafCellNumber is {pod.leaf_count}, but the containers ask for {pod.device_count}"
        raise RequestError.at(path, f"{asked} {pod.leaf_resource}: it must be at least as many")


def _vc_path(pod: ManagedPod) -> str:
    """Say where a pod's VC is written."""
    if pod.hived is not None:
        return f"metadata.annotations[{marks.HIVED_SPEC_ANNOTATION}].virtualCluster"
    if pod.labels.get(marks.VC_LABEL):
        return f"metadata.labels[{marks.VC_LABEL}]"
    return f"namespace {quote(pod.namespace)}"
