"""Holds as annotations of pods: what they say, and what changes with a change of one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kube import marks
from kube.values.objects import mapping, marks_of
from kube.values.texts import parse_number, parse_time
from policy.errors import RequestError
from policy.queues.holds import Hold, Holder, format_holder, parse_hold, read_hold, read_holder

HOLD_PATH: Final = f"metadata.annotations[{marks.HOLD_ANNOTATION}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodHold:
    """The hold that a pod states."""

    hold: Hold
    holder: Holder
    since: float
    """In seconds since 1970."""

    def seconds(self, until: float) -> float:
        """Return how long it has lasted at a moment, if nothing but its time has lifted it."""
        end = until if self.hold.until is None else min(until, self.hold.until)
        return max(0.0, end - self.since)


def read_pod_hold(annotations: Mapping[str, Any], *, owner: str, created: float) -> PodHold | None:
    """Read the hold of a pod; None if it has none."""
    text = annotations.get(marks.HOLD_ANNOTATION)
    if not isinstance(text, str):
        return None
    stated = annotations.get(marks.HELD_BY_ANNOTATION)
    holder = read_holder(stated if isinstance(stated, str) else "", owner=owner)
    since = created if holder.since is None else max(created, holder.since)
    return PodHold(hold=read_hold(text), holder=holder, since=since)


def read_held_seconds(annotations: Mapping[str, Any]) -> float:
    """Read for how long earlier holds of a pod have lasted."""
    text = annotations.get(marks.HELD_SECONDS_ANNOTATION)
    return float(parse_number(text) or 0) if isinstance(text, str) else 0.0


def check_hold(obj: Mapping[str, Any]) -> None:
    """Raise RequestError if the hold of an object is not valid."""
    text = marks_of(obj, "annotations").get(marks.HOLD_ANNOTATION)
    try:
        if text is not None:
            parse_hold(str(text))
    except ValueError as exc:
        raise RequestError.at(HOLD_PATH, str(exc)) from exc


def hold_of_workload(obj: Mapping[str, Any], template: Mapping[str, Any]) -> dict[str, str]:
    """Return the hold of a new workload as annotation of its template. Raises RequestError."""
    check_hold(obj)
    text = marks_of(obj, "annotations").get(marks.HOLD_ANNOTATION)
    is_given = marks.HOLD_ANNOTATION in marks_of(template, "annotations")
    return {} if is_given or not isinstance(text, str) else {marks.HOLD_ANNOTATION: text}


def hold_annotations(
    before: Mapping[str, Any], after: Mapping[str, Any], *, holder: Holder, now: float
) -> dict[str, str | None]:
    """Return the annotations that follow from a change of a pod's hold; None removes one."""
    old, metadata = marks_of(before, "annotations"), mapping(before.get("metadata"))
    created = parse_time(str(metadata.get("creationTimestamp") or ""))
    was = read_pod_hold(old, owner="", created=created)
    held = read_held_seconds(old) + (was.seconds(now) if was is not None else 0.0)
    is_held = marks.HOLD_ANNOTATION in marks_of(after, "annotations")
    return {
        marks.HELD_BY_ANNOTATION: format_holder(holder) if is_held else None,
        marks.HELD_SECONDS_ANNOTATION: str(round(held)) if round(held) else None,
    }
