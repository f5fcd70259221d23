"""When owners wish their gangs to start, as an annotation of pods, templates and workloads."""

from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.values.objects import marks_of
from policy.errors import RequestError
from policy.queues.moments import parse_seconds
from policy.wording import describe

START_BY_PATH: Final = f"metadata.annotations[{marks.START_BY_ANNOTATION}]"
_EXAMPLE: Final = "2026-11-20T08:00:00Z"


def read_start_by(annotations: Mapping[str, Any]) -> float | None:
    """Read the wished start of a pod, in seconds since 1970; None if that cannot be read."""
    text = annotations.get(marks.START_BY_ANNOTATION)
    try:
        return None if text is None else _parse(text)
    except ValueError:
        return None


def check_start_by(obj: Mapping[str, Any]) -> None:
    """Raise RequestError if the wished start of a new object is no time."""
    text = marks_of(obj, "annotations").get(marks.START_BY_ANNOTATION)
    try:
        if text is not None:
            _parse(text)
    except ValueError as exc:
        raise RequestError.at(START_BY_PATH, str(exc)) from exc


def start_by_of_workload(obj: Mapping[str, Any], template: Mapping[str, Any]) -> dict[str, str]:
    """Return the wish of a new workload as annotation of its template. Raises RequestError."""
    check_start_by(obj)
    text = marks_of(obj, "annotations").get(marks.START_BY_ANNOTATION)
    is_given = marks.START_BY_ANNOTATION in marks_of(template, "annotations")
    return {} if is_given or not isinstance(text, str) else {marks.START_BY_ANNOTATION: text}


def _parse(text: object) -> float:
    seconds = parse_seconds(text)
    if seconds is None:
        raise ValueError(f"must be a time such as {_EXAMPLE}, not {describe(text)}")
    return seconds
