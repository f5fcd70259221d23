"""Reads the life of a pod from its metadata and status.

A value of another type than expected, or a time that cannot be read, counts as missing.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kube.lives.run_limits import read_deadline, read_estimate
from kube.values.objects import items, mapping
from kube.values.texts import parse_time
from policy.pod_life import Disruption, PodLife

_STATES: Final = ("state", "lastState")
_TEXT_LENGTH: Final = 1024


def read_life(pod: Mapping[str, Any]) -> PodLife:
    """Read what a pod says about its own life."""
    metadata, spec, status = (mapping(pod.get(part)) for part in ("metadata", "spec", "status"))
    phase, containers = status.get("phase"), items(status.get("containerStatuses"))
    conditions = {one.get("type"): one for one in items(status.get("conditions"))}
    created = parse_time(str(metadata.get("creationTimestamp")))
    return PodLife(
        created=created,
        bound=_read_bound(spec, status, conditions, created=created),
        started=_first(_times(containers, "startedAt")),
        asked_to_end=_read_asked_to_end(metadata),
        finished=_last(_times(containers, "finishedAt")),
        has_succeeded=phase == "Succeeded",
        has_failed=phase == "Failed",
        status_reason=_text(status.get("reason")),
        failure=_read_failure(containers),
        disruption=_read_disruption(mapping(conditions.get("DisruptionTarget"))),
        restarts=sum(_count(one.get("restartCount")) for one in containers),
        image=_text(next((one.get("image") for one in items(spec.get("containers"))), "")),
        estimate_seconds=read_estimate(pod),
        deadline_seconds=read_deadline(pod),
        limit_seconds=_count(spec.get("activeDeadlineSeconds")) or None,
    )


def _read_bound(
    spec: Mapping[str, Any],
    status: Mapping[str, Any],
    conditions: Mapping[Any, Mapping[str, Any]],
    *,
    created: float,
) -> float | None:
    """Return when a pod got its node; a pod that was created with one has no condition."""
    if not spec.get("nodeName"):
        return None
    scheduled = mapping(conditions.get("PodScheduled"))
    if scheduled.get("status") == "True":
        return parse_time(str(scheduled.get("lastTransitionTime"))) or created
    return parse_time(str(status.get("startTime"))) or created


def _read_asked_to_end(metadata: Mapping[str, Any]) -> float | None:
    """Return when a pod was deleted: Kubernetes writes when its grace period ends."""
    ends = parse_time(str(metadata.get("deletionTimestamp")))
    return ends - _count(metadata.get("deletionGracePeriodSeconds")) if ends else None


def _read_disruption(condition: Mapping[str, Any]) -> Disruption | None:
    if condition.get("status") != "True":
        return None
    return Disruption(_text(condition.get("reason")), _text(condition.get("message")))


def _read_failure(containers: Iterable[Mapping[str, Any]]) -> str:
    for one in containers:
        ended = mapping(mapping(one.get("state")).get("terminated"))
        if code := ended.get("exitCode"):
            reason = f" ({_text(ended.get('reason'))})" if ended.get("reason") else ""
            return f"container {_text(one.get('name'))} ended with exit code {code}{reason}"
    return ""


def _times(containers: Iterable[Mapping[str, Any]], key: str) -> list[float]:
    """Return the times of the containers' present and last states."""
    states = (
        mapping(state)
        for one in containers
        for place in _STATES
        for state in mapping(one.get(place)).values()
    )
    return [time for state in states if (time := parse_time(str(state.get(key))))]


def _first(times: list[float]) -> float | None:
    return min(times, default=None)


def _last(times: list[float]) -> float | None:
    return max(times, default=None)


def _count(value: object) -> int:
    return value if type(value) is int and 0 < value < 2**31 else 0


def _text(value: object) -> str:
    return value[:_TEXT_LENGTH] if isinstance(value, str) else ""
