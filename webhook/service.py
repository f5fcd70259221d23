"""The one sequence of the API-server side: identify, decide, log, answer.

Everything is answered from memory: neither Kubernetes nor Postgres is in the way of an answer.

The submitter is whoever sends the pod to the API server. What a template says of its submitter is
not believed, since nothing guards that mark yet.
"""

from collections.abc import Mapping
from typing import Any

from kube import marks
from kube.pods import ManagedPod, read_pod
from kube.policies import PolicySink
from kube.submitters import format_submitter_groups
from policy.decision import Outcome, RuleDecision
from policy.errors import RequestError
from policy.store import Policy
from policy.submission import GroupName, Submission, UserName
from service.clock import Clock
from state.log import DecisionLog, DecisionRecord
from webhook import mutate
from webhook.metrics import WebhookMetrics
from webhook.namespaces import NamespaceSink
from webhook.wire import ALLOWED, Answer, ReviewRequest


class ReviewService:
    """Answers the API server."""

    def __init__(
        self,
        *,
        policies: PolicySink,
        namespaces: NamespaceSink,
        log: DecisionLog,
        metrics: WebhookMetrics,
        clock: Clock,
    ) -> None:
        self._policies = policies
        self._namespaces = namespaces
        self._log = log
        self._metrics = metrics
        self._clock = clock

    async def mutate(self, request: ReviewRequest) -> Answer:
        """Decide the class of a pod that is being created, and write it into the pod."""
        if request.operation != "CREATE" or request.object is None:
            return ALLOWED
        began = self._clock.monotonic()
        policy = self._policies.policy
        try:
            pod = self._read_pod(request, request.object)
            if pod is None:
                return ALLOWED
            decision = policy.rules.decide(
                _submission(pod, request, policy), usage=None, classes=policy.classes
            )
        except RequestError as exc:
            self._metrics.decisions.labels("invalid").inc()
            return Answer(is_allowed=False, message=str(exc))
        outcome = "lowered" if decision.is_lowered else decision.outcome.value
        self._metrics.decisions.labels(outcome).inc()
        if not request.dry_run:
            seconds = self._clock.monotonic() - began
            self._log.append(self._record(request, decision, policy=policy, seconds=seconds))
        return _answer(request, decision)

    def _read_pod(self, request: ReviewRequest, obj: Mapping[str, Any]) -> ManagedPod | None:
        labels = self._namespaces.labels(request.namespace)
        return read_pod(obj, namespace_labels=labels, request_uid=request.uid)

    def _record(
        self, request: ReviewRequest, decision: RuleDecision, *, policy: Policy, seconds: float
    ) -> DecisionRecord:
        submission = decision.submission
        return DecisionRecord(
            at=self._clock.now(),
            service="webhook",
            kind="admission",
            subject=str(submission.gang),
            outcome=decision.outcome,
            reason=" ".join(decision.explain()),
            policy_version=policy.version,
            latency_seconds=seconds,
            details={
                "decision": request.uid,
                "user": submission.user,
                "vc": submission.vc,
                "requestedClass": decision.requested_class,
                "class": decision.final_class,
                "leafCount": submission.leaf_count,
            },
        )


def _submission(pod: ManagedPod, request: ReviewRequest, policy: Policy) -> Submission:
    """Say who asks for what; RequestError for a class that the admins do not know."""
    requested = policy.classes.resolve(pod.class_name, path="spec.priorityClassName")
    return Submission(
        user=UserName(request.user.username),
        groups=tuple(GroupName(group) for group in request.user.groups),
        vc=pod.vc,
        requested_class=requested,
        gang=pod.gang.key,
        gang_size=pod.gang.size or 1,
        leaf_count=pod.gang_leaf_count or pod.leaf_count,
        leaf_type=pod.leaf_type,
        labels=pod.labels,
    )


def _answer(request: ReviewRequest, decision: RuleDecision) -> Answer:
    if decision.outcome is Outcome.REFUSED or request.object is None:
        return Answer(is_allowed=False, message=decision.format_refusal())
    annotations = {
        marks.SUBMITTER_ANNOTATION: decision.submission.user,
        marks.SUBMITTER_GROUPS_ANNOTATION: format_submitter_groups(decision.submission.groups),
        marks.REQUESTED_CLASS_ANNOTATION: decision.requested_class,
        marks.DECISION_ANNOTATION: request.uid,
    }
    patch = [
        *mutate.class_patch(request.object, decision.final_class),
        *mutate.annotations_patch(request.object, annotations),
        *mutate.unmark_patch(request.object, marks.PLACEMENT_ANNOTATIONS),
        *mutate.scheduler_patch(request.object, marks.SCHEDULER_NAME),
    ]
    return Answer(is_allowed=True, patch=patch, warnings=decision.format_warnings())
