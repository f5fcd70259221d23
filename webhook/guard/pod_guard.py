"""Reviews of pods before they are stored: what may change on a pod after its decision.

At creation, another webhook may run after ours and change what the pod asks for, or make a pod ask
for leaf cells in the first place. Then the line on the pod that says what it asked for
(`webhook.responses.request_line`) differs or is missing, and the pod is refused, since what it
would use is not charged.

Afterwards only Cellgate changes its marks (labels and annotations that say who pays for which gang,
in which class and where) and its gate: with other marks a pod could run at another user's cost, or
without a plan. What shapes gave the pod stays, too (`kube.shaping.shaped_fields`). Some
are for users to change (`webhook.guard.user_marks`).
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, Literal

from kube import marks
from kube.admission.request_line import SEPARATOR, describe_request
from kube.read.managed_pod import ManagedPod
from kube.read.pods import read_pod
from kube.shaping.shaped_fields import find_undone
from kube.values.objects import items, mapping, marks_of
from policy.errors import Problem, RequestError
from policy.wording import quote
from webhook.guard.node_guard import NodeGuard
from webhook.guard.user_marks import USER_MARKS, UserMarks
from webhook.records.pending_events import PendingEvents
from webhook.wire import ALLOWED, ReviewRequest, ReviewResponse

_PARTS: Final[tuple[Literal["labels", "annotations"], ...]] = ("annotations", "labels")
_HINT: Final = (
    "another webhook changed the pod after Cellgate had decided; "
    'give its configuration a name that sorts before "cellgate"'
)
_ASKED: Final = frozenset(
    {
        marks.ALTERNATIVES_ANNOTATION,
        marks.COST_ANNOTATION,
        marks.HIVED_SPEC_ANNOTATION,
        marks.LATE_ANNOTATION,
        marks.RUN_TIME_ANNOTATION,
        marks.START_BY_ANNOTATION,
        *marks.GANG_MARKS,
    }
)
"""Annotations in which users ask for something when they create a pod."""


class PodGuard:
    """Reviews pods that are about to be stored."""

    def __init__(
        self,
        *,
        events: PendingEvents,
        nodes: NodeGuard,
        users: UserMarks,
        trusted: Collection[str],
    ) -> None:
        """`trusted` are users and groups that may change everything: the extender and admins."""
        self._events = events
        self._nodes = nodes
        self._users = users
        self._trusted = trusted

    async def validate(self, review: ReviewRequest) -> ReviewResponse:
        """Raise RequestError for a pod that differs from its decision, or a change by others."""
        if review.operation == "CREATE" and review.object is not None:
            self._check_new(review, review.object)
        elif review.object is not None and review.old_object is not None:
            self._check_change(review, review.old_object, review.object)
        return ALLOWED

    def _check_new(self, review: ReviewRequest, obj: Mapping[str, Any]) -> None:
        pod = read_pod(obj)
        if pod is None:
            return
        decision = _check_decided(obj, pod)
        self._nodes.check(review, pod)
        if not review.dry_run:
            self._events.write(obj, decision)

    def _check_change(
        self, review: ReviewRequest, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> None:
        if review.user.is_any_of(self._trusted):
            return
        part = review.subresource
        free = () if part else self._users.free(review.user, before, after)
        found = _changes(before, after, free=free, subresource=part)
        problems = [*found, *find_undone(before, after)]
        if problems:
            raise RequestError(problems)


def _check_decided(obj: Mapping[str, Any], pod: ManagedPod) -> str:
    """Return the id of the decision about a pod. Raises RequestError if it is about another one."""
    annotations = marks_of(obj, "annotations")
    decision = annotations.get(marks.DECISION_ANNOTATION)
    if not isinstance(decision, str):
        path = f"metadata.annotations[{marks.DECISION_ANNOTATION}]"
        raise RequestError.at(path, f"is missing from a pod that asks for leaf cells: {_HINT}")
    problems = [*_differences(obj, pod, annotations)]
    if pod.is_uncharged and not pod.is_gated:
        message = f"must have {marks.QUEUED_GATE} while the pod waits for quota: {_HINT}"
        problems.append(Problem("spec.schedulingGates", message))
    if problems:
        raise RequestError(problems)
    return decision


def _differences(
    obj: Mapping[str, Any], pod: ManagedPod, annotations: Mapping[str, Any]
) -> Iterator[Problem]:
    given = mapping(obj.get("spec")).get("priorityClassName") or ""
    compared = {
        "spec.priorityClassName": (annotations.get(marks.CLASS_ANNOTATION), given),
        "spec": (annotations.get(marks.REQUEST_ANNOTATION), describe_request(obj, pod)),
    }
    for path, (was, now) in compared.items():
        if was != now:
            change = f"was {_show(was, other=now)} and is {_show(now, other=was)}"
            yield Problem(path, f"{change}: {_HINT}")


def _show(line: object, *, other: object) -> str:
    """Show the parts of a line that the other one lacks."""
    others = frozenset(str(other).split(SEPARATOR))
    return quote(SEPARATOR.join(part for part in str(line).split(SEPARATOR) if part not in others))


def _changes(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    free: Collection[str],
    subresource: str,
) -> Iterator[Problem]:
    """Yield our marks that differ and are not `free` to change.

    Annotations are ours on every managed pod; otherwise a pod that we did not review could say
    where it runs and who pays. The submitter's labels are fixed once the class is decided.
    """
    is_decided = marks.DECISION_ANNOTATION in marks_of(before, "annotations")
    for part in _PARTS:
        old, new = marks_of(before, part), marks_of(after, part)
        for key in sorted(key for key in {*old, *new} if isinstance(key, str) and key not in free):
            is_ours = part == "annotations" and marks.is_ours(key)
            is_fixed = is_decided and (key.startswith(marks.DOMAIN) or key in marks.GANG_MARKS)
            if (is_ours or is_fixed) and old.get(key) != new.get(key):
                yield Problem(f"metadata.{part}[{key}]", _refusal(part, key, subresource))
    if marks.QUEUED_GATE in _gates(before) and marks.QUEUED_GATE not in _gates(after):
        message = f"only Cellgate may lift {marks.QUEUED_GATE}"
        yield Problem("spec.schedulingGates", message)


def _refusal(part: str, key: str, subresource: str) -> str:
    if part == "annotations" and key in USER_MARKS:
        if subresource:
            return f"change it on the pod itself, not on its {subresource}"
        return "only the owner of the gang, an admin of its group or a policy admin may change it"
    if part == "labels" or key in _ASKED:
        return "cannot be changed after the pod was created; create a new pod instead"
    return "only Cellgate may change it"


def _gates(pod: Mapping[str, Any]) -> list[Any]:
    gates = mapping(pod.get("spec")).get("schedulingGates")
    return [gate.get("name") for gate in items(gates)]
