"""Reviews of PodGroups: the class that their pods will get is set when the group is created.

A PodGroup does not say what its pods ask for. It is decided about as if each asked for one leaf
cell; where that makes a difference, its pods are refused later and told why. Only groups in one of
the admins' classes are touched, for others may have nothing to do with leaf cells.
"""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from kube import marks
from kube.namespaces import NamespaceSink
from kube.objects import marks_of
from kube.podgroups import API_VERSION, KIND, read_pod_group
from kube.policies import PolicySink
from policy.decision import Outcome
from policy.submission import DEFAULT_VC, ClassName, Submission, UserName, VcName
from webhook import mutate
from webhook.admitting import Admitter
from webhook.verdict import Request
from webhook.wire import ALLOWED, Answer, ReviewRequest


def is_pod_group(obj: Mapping[str, Any]) -> bool:
    """Tell whether an object is a native PodGroup."""
    return obj.get("apiVersion") == API_VERSION and obj.get("kind") == KIND


class PodGroupReviews:
    """Answers about PodGroups."""

    def __init__(
        self, *, policies: PolicySink, namespaces: NamespaceSink, admitter: Admitter
    ) -> None:
        self._policies = policies
        self._namespaces = namespaces
        self._admitter = admitter

    def mutate(self, review: ReviewRequest, obj: Mapping[str, Any]) -> Answer:
        """Give a new PodGroup the class that its pods will have to have."""
        group = read_pod_group(obj, namespace=review.namespace)
        classes = self._policies.policy.classes
        if group.class_name is None or not classes.is_listed(group.class_name):
            return ALLOWED
        request = self._request(review, obj, class_name=group.class_name)
        verdict = self._admitter.preview(request)
        if verdict.outcome is Outcome.REFUSED:
            return Answer(is_allowed=False, message=verdict.admission.format_refusal())
        patch = mutate.class_patch(obj, verdict.final_class)
        return Answer(is_allowed=True, patch=patch, warnings=verdict.format_warnings())

    def _request(
        self, review: ReviewRequest, obj: Mapping[str, Any], *, class_name: ClassName
    ) -> Request:
        policy, user = self._policies.policy, UserName(review.user.username)
        group = read_pod_group(obj, namespace=review.namespace)
        groups = policy.identity.groups_of(user, review.user.groups)
        submission = Submission(
            user=user,
            groups=groups,
            vc=self._vc(review, obj),
            requested_class=class_name,
            gang=group.key,
            gang_size=group.min_size or 1,
            leaf_count=group.min_size or 1,
        )
        return Request(
            submission=submission,
            group=policy.quotas.find(user, groups, named=None, path=""),
            decision=uuid4(),
            policy=policy,
            is_alone=False,
        )

    def _vc(self, review: ReviewRequest, obj: Mapping[str, Any]) -> VcName:
        own = marks_of(obj, "labels").get(marks.VC_LABEL)
        inherited = self._namespaces.labels(review.namespace).get(marks.VC_LABEL)
        return VcName(str(own or inherited or DEFAULT_VC))
