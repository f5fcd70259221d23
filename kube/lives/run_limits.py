"""What an owner and a workload say about the run time of pods.

The owner's estimate is an annotation of the pod, of its template, or of the workload. A Job's
`activeDeadlineSeconds` is not on its pods; the webhook writes it on the template.
"""

from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.values.objects import mapping, marks_of
from policy.errors import RequestError
from policy.queues.durations import parse_duration

ESTIMATE_PATH: Final = f"metadata.annotations[{marks.RUN_TIME_ANNOTATION}]"
_DEADLINE_PATH: Final = f"metadata.annotations[{marks.DEADLINE_ANNOTATION}]"
_FIELD: Final = "activeDeadlineSeconds"
_MOST_SECONDS: Final = 2**31


def read_estimate(obj: Mapping[str, Any]) -> int | None:
    """Read how long the owner expects a pod to run, in seconds; None if that cannot be read."""
    text = marks_of(obj, "annotations").get(marks.RUN_TIME_ANNOTATION)
    try:
        return int(parse_duration(text)) or None
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


def check_no_deadline(obj: Mapping[str, Any]) -> None:
    """Raise RequestError if a user has written what only the webhook may write."""
    if marks.DEADLINE_ANNOTATION in marks_of(obj, "annotations"):
        raise RequestError.at(
            _DEADLINE_PATH, f"is written by Cellgate; set {_FIELD} of the Job or of the pod"
        )


def template_marks(
    obj: Mapping[str, Any], template: Mapping[str, Any], *, holder: Mapping[str, Any]
) -> dict[str, str]:
    """Return what a new workload says about its pods, as annotations of their template.

    `holder` is the object that the template is a field of: the spec of a Job. Raises RequestError.
    """
    check_estimate(obj)
    own = marks_of(template, "annotations")
    estimate = marks_of(obj, "annotations").get(marks.RUN_TIME_ANNOTATION)
    deadline = _positive(holder.get(_FIELD))
    if deadline is None:
        check_no_deadline({"metadata": mapping(template.get("metadata"))})
    told = {
        marks.RUN_TIME_ANNOTATION: estimate,
        marks.DEADLINE_ANNOTATION: None if deadline is None else str(deadline),
    }
    is_given = marks.RUN_TIME_ANNOTATION in own
    return {
        key: value
        for key, value in told.items()
        if isinstance(value, str) and not (is_given and key == marks.RUN_TIME_ANNOTATION)
    }


def _positive(value: object) -> int | None:
    return value if type(value) is int and 0 < value < _MOST_SECONDS else None
