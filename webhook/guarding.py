"""Reviews of pods as they will be stored: nobody has changed what was decided, or does so later.

At creation another webhook may have been at the pod after ours. Afterwards our marks (labels and
annotations that say who pays for which gang, in which class and where) and our gate are ours alone:
whoever could change them could run at somebody else's cost, or without a plan.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from kube import marks
from kube.objects import items, mapping, marks_of
from policy.errors import Problem, RequestError
from policy.wording import quote
from webhook.told import ToldPods
from webhook.wire import ALLOWED, Answer, ReviewRequest, UserInfo

_OURS: Final = "cellgate.io/"
_ANNOTATIONS: Final = (marks.HIVED_SPEC_ANNOTATION, *marks.PLACEMENT_ANNOTATIONS)
"""Ours on every managed pod, beside those of our own domain."""
_GANG_MARKS: Final = (
    marks.COSCHEDULING_LABEL,
    marks.COSCHEDULING_OLD_LABEL,
    marks.COSCHEDULING_LIGHT_LABEL,
    marks.COSCHEDULING_LIGHT_MIN_LABEL,
    marks.KUEUE_GROUP,
    marks.KUEUE_COUNT_ANNOTATION,
    marks.VOLCANO_ANNOTATION,
    marks.VOLCANO_OWN_ANNOTATION,
)
"""By which a pod may say which gang it is of: fixed once that was decided."""


_Part = Literal["labels", "annotations"]
_PARTS: Final[tuple[_Part, ...]] = ("annotations", "labels")


class PodGuard:
    """Answers about pods that are about to be stored."""

    def __init__(self, *, told: ToldPods, namespace: str, admins: Sequence[str]) -> None:
        """`namespace` is where our own service accounts are; `admins` may change everything."""
        self._told = told
        self._ours = f"system:serviceaccount:{namespace}:"
        self._admins = frozenset(admins)

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

    def _check_new(self, pod: Mapping[str, Any], *, is_dry_run: bool) -> None:
        annotations = marks_of(pod, "annotations")
        decided, decision = (
            annotations.get(key) for key in (marks.CLASS_ANNOTATION, marks.DECISION_ANNOTATION)
        )
        if not isinstance(decided, str) or not isinstance(decision, str):
            return  # it was let through without us
        given = mapping(pod.get("spec")).get("priorityClassName") or ""
        if given != decided:
            message = f"was decided to be {quote(decided)}, but another webhook changed it"
            raise RequestError.at("spec.priorityClassName", message)
        if marks.UNCHARGED_ANNOTATION in annotations and marks.QUEUED_GATE not in _gates(pod):
            message = f"has no {marks.QUEUED_GATE}, though its quota is used up"
            raise RequestError.at("spec.schedulingGates", f"{message}: another webhook lifted it")
        if not is_dry_run:
            self._told.announce(pod, decision)

    def _check_change(
        self, user: UserInfo, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> None:
        if user.username.startswith(self._ours):
            return
        if not self._admins.isdisjoint((user.username, *user.groups)):
            return
        problems = list(_changes(before, after))
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
    if part == "annotations" and (key.startswith(_OURS) or key in _ANNOTATIONS):
        return True
    return is_decided and (key.startswith(_OURS) or key in _GANG_MARKS)


def _gates(pod: Mapping[str, Any]) -> list[Any]:
    gates = mapping(pod.get("spec")).get("schedulingGates")
    return [gate.get("name") for gate in items(gates)]
