"""Members that failed soon after their start, from the status of their pods.

A pod that was told to end, was evicted or ran out of memory has not failed by its node. An image
that cannot be pulled is no failure of a start either: the container has not run.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from kube.marks import DEFAULT_LEAF_RESOURCES
from kube.read.managed_pod import ManagedPod
from kube.values.objects import items, mapping
from policy.quarantine import StartFailure

STATUS_FIELDS: Final = ("reason", "startTime")
_REFUSED: Final = ("UnexpectedAdmissionError", *(f"OutOf{name}" for name in DEFAULT_LEAF_RESOURCES))
_NOT_BY_NODE: Final = ("OOMKilled",)
_NEVER_STARTED: Final = ("StartError", "ContainerCannotRun")


def ended_containers(status: object) -> list[dict[str, Any]]:
    """Return the statuses of containers that ended with an error, without all other fields."""
    found = []
    for container in items(mapping(status).get("containerStatuses")):
        ended = {
            key: {"terminated": dict(state)}
            for key in ("state", "lastState")
            if (state := mapping(mapping(container.get(key)).get("terminated"))).get("exitCode")
        }
        if ended:
            found.append(ended)
    return found


def failing_workload(pod: ManagedPod) -> str:
    """Return what a failure of a pod is counted for: its workload, or else its gang."""
    return f"{pod.namespace}/{pod.workload.mark}" if pod.workload else str(pod.gang.key)


def read_start_failures(pod: ManagedPod, obj: Mapping[str, Any]) -> Iterator[StartFailure]:
    """Yield the failures that a pod on a node reports, however long its containers ran."""
    if pod.node is None or pod.is_deleting:
        return
    status = mapping(obj.get("status"))
    workload = failing_workload(pod)
    if pod.is_finished and status.get("reason") in _REFUSED:
        at = _seconds(status.get("startTime")) or pod.created
        yield StartFailure(
            node=pod.node, workload=workload, submitter=pod.charged_user, at=at, is_by_node=True
        )
    for container in ended_containers(status):
        for state in container.values():
            ended = state["terminated"]
            finished = _seconds(ended.get("finishedAt"))
            if finished is None or ended.get("reason") in _NOT_BY_NODE:
                continue
            yield StartFailure(
                node=pod.node,
                workload=workload,
                submitter=pod.charged_user,
                at=finished,
                lasted_seconds=_run_time(ended, finished),
            )


def _run_time(ended: Mapping[str, Any], finished: float) -> float:
    started = _seconds(ended.get("startedAt"))
    if started is None or ended.get("reason") in _NEVER_STARTED:
        return 0.0
    return max(0.0, finished - started)


def _seconds(value: object) -> float | None:
    """Return seconds since 1970; None for a value that Kubernetes would not write."""
    try:
        time = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return time.timestamp() if time.tzinfo is not None else None
