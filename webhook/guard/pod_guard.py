"""Reviews of pods before they are stored: what may change on a pod after its decision.

At creation, another webhook may have changed the pod after ours (`decided_pod`). Afterwards only
Cellgate changes its marks (labels and annotations that say who pays for which gang, in which class
and where) and its gate: with other marks a pod could run at another user's cost, or without a plan.
What shapes gave the pod stays, too (`webhook.shaping.shaped_fields`).
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, Literal

from kube import marks
from kube.read.pods import read_pod
from kube.values.objects import items, mapping, marks_of
from policy.errors import Problem, RequestError
from webhook.guard.decided_pod import check_decided
from webhook.records.pending_events import PendingEvents
from webhook.shaping.shaped_fields import find_undone
from webhook.wire import ALLOWED, ReviewRequest, ReviewResponse, UserInfo

_PARTS: Final[tuple[Literal["labels", "annotations"], ...]] = ("annotations", "labels")


class PodGuard:
    """Reviews pods that are about to be stored."""

    def __init__(self, *, events: PendingEvents, trusted: Collection[str]) -> None:
        """`trusted` are users and groups that may change everything: the extender and admins."""
        self._events = events
        self._trusted = trusted

    async def validate(self, review: ReviewRequest) -> ReviewResponse:
        """Raise RequestError for a pod that differs from its decision, or a change by others."""
        if review.operation == "CREATE" and review.object is not None:
            self._check_new(review.object, is_dry_run=review.dry_run)
        elif review.object is not None and review.old_object is not None:
            self._check_change(review.user, review.old_object, review.object)
        return ALLOWED

    def _check_new(self, obj: Mapping[str, Any], *, is_dry_run: bool) -> None:
        pod = read_pod(obj)
        if pod is None:
            return
        decision = check_decided(obj, pod)
        if not is_dry_run:
            self._events.write(obj, decision)

    def _check_change(
        self, user: UserInfo, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> None:
        if user.is_any_of(self._trusted):
            return
        problems = [*_changes(before, after), *find_undone(before, after)]
        if problems:
            raise RequestError(problems)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield our marks that differ.

    Annotations are ours on every managed pod; otherwise a pod that we did not review could say
    where it runs and who pays. The submitter's labels are fixed once the class is decided.
    """
    is_decided = marks.DECISION_ANNOTATION in marks_of(before, "annotations")
    for part in _PARTS:
        old, new = marks_of(before, part), marks_of(after, part)
        for key in sorted(key for key in {*old, *new} if isinstance(key, str)):
            is_ours = part == "annotations" and marks.is_ours(key)
            is_fixed = is_decided and (key.startswith(marks.DOMAIN) or key in marks.GANG_MARKS)
            if (is_ours or is_fixed) and old.get(key) != new.get(key):
                yield Problem(f"metadata.{part}[{key}]", "only Cellgate may change it")
    if marks.QUEUED_GATE in _gates(before) and marks.QUEUED_GATE not in _gates(after):
        message = f"only Cellgate may lift {marks.QUEUED_GATE}"
        yield Problem("spec.schedulingGates", message)


def _gates(pod: Mapping[str, Any]) -> list[Any]:
    gates = mapping(pod.get("spec")).get("schedulingGates")
    return [gate.get("name") for gate in items(gates)]
