"""Reviews of pods as they will be stored: nobody has changed what was decided, or does so later.

At creation another webhook may have been at the pod after ours. Afterwards our marks (labels and
annotations that say who pays for which gang, in which class and where) and our gate are ours alone:
whoever could change them could run at somebody else's cost, or without a plan. What shapes gave to
it stays, too.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, Literal

from kube import marks
from kube.read.pods import read_pod
from kube.values.objects import items, mapping, marks_of
from policy.errors import Problem, RequestError
from policy.identity.ownership import Editor
from webhook.reviews.decided_request import check_decided
from webhook.reviews.pending_events import ToldPods
from webhook.shaping.guard import find_undone
from webhook.wire import ALLOWED, Answer, ReviewRequest, UserInfo

_Part = Literal["labels", "annotations"]
_PARTS: Final[tuple[_Part, ...]] = ("annotations", "labels")


class PodGuard:
    """Answers about pods that are about to be stored."""

    def __init__(self, *, told: ToldPods, trusted: Collection[str]) -> None:
        """`trusted` are users and groups who may change everything: ours, and admins."""
        self._told = told
        self._trusted = trusted

    async def validate(self, review: ReviewRequest) -> Answer:
        """Refuse a pod that does not say what was decided, and changes of our marks by others."""
        try:
            if review.operation == "CREATE" and review.object is not None:
                self._check_new(review.object, is_dry_run=review.dry_run)
            elif review.object is not None and review.old_object is not None:
                self._check_change(review.user, review.old_object, review.object)
        except RequestError as exc:
            return Answer(is_allowed=False, message=str(exc))
        return ALLOWED

    def _check_new(self, obj: Mapping[str, Any], *, is_dry_run: bool) -> None:
        pod = read_pod(obj)
        if pod is None:
            return
        decision = check_decided(obj, pod)
        if not is_dry_run:
            self._told.announce(obj, decision)

    def _check_change(
        self, user: UserInfo, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> None:
        if Editor(user=user.username, groups=user.groups).is_any_of(self._trusted):
            return
        problems = [*_changes(before, after), *find_undone(before, after)]
        if problems:
            raise RequestError(problems)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield our marks that differ.

    Annotations are ours on every managed pod, or one that got past us could say where it is and
    who pays. What a submitter writes (labels, whose gang it is) is fixed once it was decided upon.
    """
    is_decided = marks.DECISION_ANNOTATION in marks_of(before, "annotations")
    for part in _PARTS:
        old, new = marks_of(before, part), marks_of(after, part)
        for key in sorted(key for key in {*old, *new} if isinstance(key, str)):
            is_ours = _is_ours(key, part, is_decided=is_decided)
            if is_ours and old.get(key) != new.get(key):
                yield Problem(f"metadata.{part}[{key}]", "only Cellgate may change it")
    if marks.QUEUED_GATE in _gates(before) and marks.QUEUED_GATE not in _gates(after):
        message = f"only Cellgate may lift {marks.QUEUED_GATE}"
        yield Problem("spec.schedulingGates", message)


def _is_ours(key: str, part: _Part, *, is_decided: bool) -> bool:
    if part == "annotations" and marks.is_ours(key):
        return True
    return is_decided and (key.startswith(marks.DOMAIN) or key in marks.GANG_MARKS)


def _gates(pod: Mapping[str, Any]) -> list[Any]:
    gates = mapping(pod.get("spec")).get("schedulingGates")
    return [gate.get("name") for gate in items(gates)]
