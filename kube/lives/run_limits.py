"""What an owner and a workload say about the run time of pods.

The owner's estimate, and the cost of a preemption, are annotations of the pod, of its template, or
of the workload. A Job's `activeDeadlineSeconds` is not on its pods; the webhook writes it on the
template.
"""

from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.values.objects import mapping, marks_of
from policy.errors import RequestError
from policy.queues.durations import parse_duration

ESTIMATE_PATH: Final = f"metadata.annotations[{marks.RUN_TIME_ANNOTATION}]"
COST_PATH: Final = f"metadata.annotations[{marks.COST_ANNOTATION}]"
_DEADLINE_PATH: Final = f"metadata.annotations[{marks.DEADLINE_ANNOTATION}]"
_DEADLINE: Final = marks.DEADLINE_ANNOTATION
LIMIT_FIELD: Final = "activeDeadlineSeconds"
_MOST_SECONDS: Final = 2**31
_BY_OWNER: Final = (marks.RUN_TIME_ANNOTATION, marks.COST_ANNOTATION)
"""What a workload tells its pods, unless their template says it."""


def read_estimate(obj: Mapping[str, Any]) -> int | None:
    """Read how long the owner expects a pod to run, in seconds; None if that cannot be read."""
    text = marks_of(obj, "annotations").get(marks.RUN_TIME_ANNOTATION)
    try:
        return int(parse_duration(text)) or None
    except ValueError:
        return None


def read_checkpoint_cost(annotations: Mapping[str, Any]) -> int | None:
    """Read how much work a preemption costs, in seconds; None if that cannot be read."""
    try:
        return int(parse_duration(annotations.get(marks.COST_ANNOTATION)))
    except ValueError:
        return None


def read_deadline(obj: Mapping[str, Any]) -> int | None:
    """Read how long after its start the workload of a pod is ended, in seconds."""
    text = marks_of(obj, "annotations").get(marks.DEADLINE_ANNOTATION)
    is_number = isinstance(text, str) and text.isascii() and text.isdecimal()
    return _positive(int(text[:10])) if is_number and isinstance(text, str) else None


def check_estimate(obj: Mapping[str, Any]) -> None:
    """Raise RequestError if the owner's estimate of a new object is no duration."""
    text = marks_of(obj, "annotations").get(marks.RUN_TIME_ANNOTATION)
    if text is None:
        return
    try:
        seconds = parse_duration(text)
    except ValueError as exc:
        raise RequestError.at(ESTIMATE_PATH, str(exc)) from exc
    if seconds <= 0:
        raise RequestError.at(ESTIMATE_PATH, "must be longer than 0 s")


def check_checkpoint_cost(obj: Mapping[str, Any]) -> None:
    """Raise RequestError if a new object says in no duration what a preemption costs."""
    text = marks_of(obj, "annotations").get(marks.COST_ANNOTATION)
    if text is None:
        return
    try:
        parse_duration(text)
    except ValueError as exc:
        raise RequestError.at(COST_PATH, str(exc)) from exc


def check_no_deadline(obj: Mapping[str, Any]) -> None:
    """Raise RequestError if a user has written what only the webhook may write."""
    if marks.DEADLINE_ANNOTATION in marks_of(obj, "annotations"):
        raise RequestError.at(
            _DEADLINE_PATH, f"is written by Cellgate; set {LIMIT_FIELD} of the Job or of the pod"
        )


def template_marks(
    obj: Mapping[str, Any], template: Mapping[str, Any], *, holder: Mapping[str, Any]
) -> dict[str, str]:
    """Return what a new workload says about its pods, as annotations of their template.

    `holder` is the object that the template is a field of: the spec of a Job. Raises RequestError.
    """
    check_estimate(obj)
    check_checkpoint_cost(obj)
    said, own = marks_of(obj, "annotations"), marks_of(template, "annotations")
    deadline = stated_limit(holder)
    if deadline is None:
        check_no_deadline({"metadata": mapping(template.get("metadata"))})
    told = {key: said.get(key) for key in _BY_OWNER if key not in own}
    told[marks.DEADLINE_ANNOTATION] = deadline
    return {key: value for key, value in told.items() if isinstance(value, str)}


def stated_limit(holder: Mapping[str, Any]) -> str | None:
    """Return the limit of a workload as its pods state it; None if it has none."""
    deadline = _positive(holder.get(LIMIT_FIELD))
    return None if deadline is None else str(deadline)


def check_deadline_kept(
    before: Mapping[str, Any], template: Mapping[str, Any], *, holder: Mapping[str, Any]
) -> None:
    """Raise RequestError if a changed workload runs for longer than its pods state.

    `before` is the earlier template. Gangs start before others because of their limit: it may be
    lowered, but not raised.
    """
    was, told = (marks_of(one, "annotations").get(_DEADLINE) for one in (before, template))
    deadline = _positive(holder.get(LIMIT_FIELD))
    if told not in (None, was, str(deadline)):
        check_no_deadline({"metadata": mapping(template.get("metadata"))})
    known = read_deadline(template)
    if known is not None and (deadline is None or deadline > known):
        message = (
            f"must be at most {known}: the place of the gang in the queue follows from it; "
            "submit another workload for a longer run"
        )
        raise RequestError.at(LIMIT_FIELD, message)


def _positive(value: object) -> int | None:
    return value if type(value) is int and 0 < value < _MOST_SECONDS else None
