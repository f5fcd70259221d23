"""Reviews of deletions: the log says which user cancelled which gang, and why.

A deletion is never refused here: the rights of Kubernetes decide. What controllers delete, and what
has ended before, is no cancellation; the API server does not ask about the first.
"""

from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.follow.policies import PolicySink
from kube.read.pods import read_pod
from kube.values.objects import items, mapping, marks_of
from policy.errors import RequestError
from policy.queues.cancels import describe_cancel, read_reason
from policy.queues.holds import HoldRole
from service.clock import Clock
from service.memory import ExpiringMap
from state.log.log import DecisionLog
from state.log.records import DecisionRecord, RowKind
from webhook.guard.gang_roles import GangRoles
from webhook.reviews.pod_templates import find_marks
from webhook.wire import ALLOWED, ReviewRequest, ReviewResponse

_REMEMBERED: Final = 10_000
_REPEAT_SECONDS: Final = 60.0
"""The pods of a gang are deleted one by one: the gang has one row."""
_OVER: Final = frozenset({"Complete", "Completed", "Failed", "Finished", "Succeeded"})
"""Conditions of workloads that have ended."""
_MOST_GANGS: Final = 20
_ORPHANING: Final = frozenset({"Job"})
"""Kinds whose pods stay unless the deletion says otherwise; kubectl does."""


class CancelReviews:
    """Reviews workloads and pods that a user deletes."""

    def __init__(
        self, policies: PolicySink, roles: GangRoles, *, log: DecisionLog, clock: Clock
    ) -> None:
        self._policies = policies
        self._roles = roles
        self._log = log
        self._clock = clock
        self._written: ExpiringMap[tuple[str, str], None] = ExpiringMap(
            _REMEMBERED, seconds=_REPEAT_SECONDS, monotonic=clock.monotonic
        )

    async def validate(self, review: ReviewRequest) -> ReviewResponse:
        """Record who cancels a gang; the deletion is allowed in any case."""
        obj = review.old_object
        is_trusted = self._policies.policy.identity.is_trusted(review.user.username)
        is_real = review.operation == "DELETE" and not (review.dry_run or is_trusted)
        if obj is None or not is_real or _leaves_pods(obj, mapping(review.options)):
            return ALLOWED
        if mapping(obj.get("metadata")).get("deletionTimestamp") is not None:
            return ALLOWED  # its kubelet, or the last finalizer, removes what was deleted before
        if obj.get("kind") == "Pod":
            self._note_pod(review, obj)
        elif not _has_ended(obj):
            self._note_workload(review, obj)
        return ALLOWED

    def _note_pod(self, review: ReviewRequest, obj: Mapping[str, Any]) -> None:
        try:
            pod = read_pod(obj)
        except RequestError:
            return
        # A controller creates its pods again: their deletion cancels nothing.
        is_owned = bool(mapping(obj.get("metadata")).get("ownerReferences"))
        if pod is None or pod.is_finished or is_owned:
            return
        role = next(iter(self._roles.of(review.user, pod)), None)
        self._record(review, str(pod.gang.key), role, {"pod": pod.display_name}, obj=obj)

    def _note_workload(self, review: ReviewRequest, obj: Mapping[str, Any]) -> None:
        found = {key: value for (*_, key), value in find_marks(obj, (marks.SUBMITTER_ANNOTATION,))}
        owner = found.get(marks.SUBMITTER_ANNOTATION)
        if not isinstance(owner, str):
            return
        group = next((str(one) for _, one in find_marks(obj, (marks.GROUP_LABEL,))), None)
        role = next(iter(self._roles.find(review.user, owner=owner, group=group)), None)
        named = sorted({str(one) for _, one in find_marks(obj, (marks.GANG_LABEL,))})
        uid = str(mapping(obj.get("metadata")).get("uid") or "")
        details = {"workload": f"{obj.get('kind')}/{review.name}", "workloadUid": uid}
        for gang in named[:_MOST_GANGS] or [review.name]:
            self._record(review, f"{review.namespace}/{gang}", role, details, obj=obj)

    def _record(
        self,
        review: ReviewRequest,
        subject: str,
        role: HoldRole | None,
        details: Mapping[str, Any],
        *,
        obj: Mapping[str, Any],
    ) -> None:
        why = read_reason(marks_of(obj, "annotations").get(marks.CANCEL_ANNOTATION))
        user = review.user.username
        reason = describe_cancel(user, role, why)
        if (subject, reason) in self._written:
            return
        self._written[subject, reason] = None
        told = {"user": user, **({"role": role} if role else {}), **({"why": why} if why else {})}
        self._log.append(
            DecisionRecord(
                at=self._clock.now(),
                service="webhook",
                kind=RowKind.CANCEL,
                subject=subject,
                outcome="cancelled",
                reason=reason,
                latency_seconds=0.0,
                details={**told, **details},
            )
        )


def _leaves_pods(obj: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether a deletion leaves the pods of a workload alone."""
    policy = options.get("propagationPolicy")
    if policy is None and options.get("orphanDependents") is None:
        return obj.get("kind") in _ORPHANING
    return policy == "Orphan" or options.get("orphanDependents") is True


def _has_ended(obj: Mapping[str, Any]) -> bool:
    """Whether a workload had ended before."""
    conditions = items(mapping(obj.get("status")).get("conditions"))
    return any(one.get("type") in _OVER and one.get("status") == "True" for one in conditions)
