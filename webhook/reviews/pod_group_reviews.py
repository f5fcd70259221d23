"""Reviews of PodGroups: decide the class of a group's pods when the group is created.

A PodGroup of a workload whose pod templates are known has a submitter, and its templates say what
its pods ask for. It is decided and charged like the first of those pods, which then follow.

Other PodGroups may say in an annotation what each of their pods asks for. Those that do not are
decided for pods of every size that a node can hold, and get the lowest class; the gang gets the one
that its pods are granted (`policy.admission.group_class`). Only groups in a class of the Classes
document are touched, since others may not use leaf cells at all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

from kube import marks
from kube.admission import patches
from kube.admission.pod_request import is_unlisted_default
from kube.admission.possibility import warn
from kube.api.client import KubeClient, KubeError
from kube.read.pod_groups import API_VERSION, KIND, PodGroup, read_pod_group
from kube.read.workloads import controller_of
from kube.values.objects import Operation, marks_of
from policy.admission.charge_request import ChargeRequest
from policy.admission.group_class import GroupDecision, choose_lowest
from policy.capacity import largest_member
from policy.errors import RequestError
from policy.submission import (
    DEFAULT_VC,
    ClassName,
    GroupName,
    LeafType,
    Submission,
    UserName,
    VcName,
)
from policy.wording import quote
from state.nodes.node_facts import NodeFacts
from webhook.admission.admitter import Admitter
from webhook.cluster_view import ClusterView
from webhook.ledger_access.time_budget import KUBE_SECONDS, within_budget
from webhook.responses.pod_response import respond_with
from webhook.reviews.pod_reviews import PodReviews
from webhook.reviews.pod_templates import MAX_TEMPLATES, PodTemplate, find_templates
from webhook.wire import ALLOWED, ReviewRequest, ReviewResponse

_USUAL_LARGEST: Final = 16
"""The leaf cells of a node where it is not known how many the largest one has."""
_MOST_ASKS: Final = 256


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
        facts: NodeFacts,
    ) -> None:
        self._policies = view.policies
        self._priorities = view.priorities
        self._namespaces = view.namespaces
        self._admitter = admitter
        self._pods = pods
        self._client = client
        self._facts = facts

    async def mutate(self, review: ReviewRequest, obj: Mapping[str, Any]) -> ReviewResponse:
        """Give a new PodGroup the class that its pods must have.

        Raises RequestError and ConflictError.
        """
        if review.operation != "CREATE":
            return ALLOWED  # its class cannot be changed any more
        group = read_pod_group(obj, namespace=review.namespace)
        if self._policies.policy.identity.is_trusted(review.user.username):
            chosen = await self._decide_by_owner(review, obj, group)
        else:
            chosen = self._preview(review, obj, group)
        if chosen is None:
            return ALLOWED
        patch = _group_patch(obj, group, chosen.decision.final_class)
        warnings = [warn(note) for note in chosen.notes]
        return respond_with(chosen.decision, patch=patch, warnings=warnings)

    def _preview(
        self, review: ReviewRequest, obj: Mapping[str, Any], group: PodGroup
    ) -> GroupDecision | None:
        """Decide by what each pod asks for, or may ask for; None if it needs no decision."""
        classes = self._policies.policy.classes
        if group.class_name is None or not classes.is_listed(group.class_name):
            return None
        request = self._build_request(review, obj, group)
        asks = self._asks(obj, request.submission.leaf_type)
        decisions = {each: self._admitter.preview(_asking(request, each)) for each in asks}
        if not decisions:
            return None
        return choose_lowest(decisions, name=group.key.name, classes=classes)

    def _asks(self, obj: Mapping[str, Any], leaf_type: LeafType | None) -> Iterable[int]:
        """Return the leaf cells that a pod may ask for; none if it asks for no leaf cells.

        Raises RequestError if the PodGroup does not say it in a number.
        """
        text = marks_of(obj, "annotations").get(marks.LEAF_CELLS_ANNOTATION)
        if text is None:
            capacity = self._facts.capacity
            known = 0 if capacity is None else largest_member(capacity, leaf_type)
            return range(1, min(known or _USUAL_LARGEST, _MOST_ASKS) + 1)
        if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 6):
            path = f"metadata.annotations[{marks.LEAF_CELLS_ANNOTATION}]"
            message = f"is {quote(str(text))}; write the leaf cells of each pod as a whole number"
            raise RequestError.at(path, message)
        return [int(text)] if int(text) else []

    async def _decide_by_owner(
        self, review: ReviewRequest, obj: Mapping[str, Any], group: PodGroup
    ) -> GroupDecision | None:
        """Decide about the pods of a workload; None if the templates of its pods are not found.

        Where its templates differ, the PodGroup gets the lowest class of theirs.
        """
        templates = await self._find_templates(review, obj)
        policy, named = self._policies.policy, group.class_name
        is_default = self._priorities.is_default
        if is_unlisted_default(named, classes=policy.classes, is_default=is_default):
            named = None
        group = replace(group, class_name=named or policy.classes.default or None)
        decisions = []
        for template in templates:
            pod = template.to_pod(review, {})
            pod["spec"] = {**pod["spec"], "schedulingGroup": {"podGroupName": group.key.name}}
            is_only = len(templates) == 1
            made = await self._pods.decide_for_group(review, pod, group, is_charged=is_only)
            decisions += [] if made is None else [made]
        if not decisions:
            return None
        found = dict(enumerate(decisions, 1))
        chosen = choose_lowest(found, name=group.key.name, classes=policy.classes)
        return replace(chosen, notes=())

    async def _find_templates(
        self, review: ReviewRequest, obj: Mapping[str, Any]
    ) -> list[PodTemplate]:
        """Return the pod templates of the workload that controls a PodGroup, as far as known."""
        link = controller_of(obj)
        if link is None:
            return []
        own = link.workload
        api_version = f"{own.group}/{link.version}" if own.group else link.version
        identity = self._policies.policy.identity
        kinds = identity.find_templates(api_version=api_version, kind=own.kind)
        if not kinds:
            return []
        try:
            async with within_budget(KUBE_SECONDS):
                workload = await self._client.request("GET", link.path(review.namespace))
        except (KubeError, TimeoutError):
            return []  # its pods are refused later if they would get a lower class
        return find_templates(workload, kinds)[:MAX_TEMPLATES]

    def _build_request(
        self, review: ReviewRequest, obj: Mapping[str, Any], group: PodGroup
    ) -> ChargeRequest:
        """Build the request of a gang whose pods ask for one leaf cell each."""
        policy, user = self._policies.policy, UserName(review.user.username)
        groups = policy.identity.groups_of(user, review.user.groups)
        labels = {key: str(value) for key, value in marks_of(obj, "labels").items()}
        submission = Submission(
            user=user,
            groups=groups,
            vc=self._vc(review, labels),
            requested_class=group.class_name or policy.classes.default,
            gang=group.key,
            gang_size=group.min_size or 1,
            leaf_count=group.min_size or 1,
            leaf_type=LeafType(labels.get(marks.LEAF_TYPE_LABEL, "")) or None,
            labels=labels,
        )
        return ChargeRequest(
            submission=submission,
            group=policy.quotas.find(
                user,
                groups,
                named=GroupName(labels.get(marks.GROUP_LABEL, "")) or None,
                path=f"metadata.labels[{marks.GROUP_LABEL}]",
                by_identity=policy.identity.groups_of(user, ()),
            ),
            decision=uuid4(),
            policy=policy,
            is_alone=False,
        )

    def _vc(self, review: ReviewRequest, labels: Mapping[str, str]) -> VcName:
        inherited = self._namespaces.labels(review.namespace).get(marks.VC_LABEL)
        return VcName(str(labels.get(marks.VC_LABEL) or inherited or DEFAULT_VC))


def _asking(request: ChargeRequest, each: int) -> ChargeRequest:
    """Return a request with so many leaf cells for each pod."""
    leaf_count = request.submission.gang_size * each
    return replace(request, submission=replace(request.submission, leaf_count=leaf_count))


def _group_patch(obj: Mapping[str, Any], group: PodGroup, class_name: ClassName) -> list[Operation]:
    """Set the class of a PodGroup, and keep the one that its author asked for if it is lower."""
    asked = {marks.REQUESTED_CLASS_ANNOTATION: group.class_name or ""}
    if class_name == group.class_name or not group.class_name:
        stale = patches.unmark_patch(obj, asked)
        return [*patches.class_patch(obj, class_name), *stale]
    return [*patches.class_patch(obj, class_name), *patches.annotations_patch(obj, asked)]
