"""Failures at start, as the status of a pod tells them."""

from typing import Any

import pytest

from kube.read.pods import read_pod
from kube.read.start_failures import read_start_failures
from kube.read.trimming import trim_pod
from policy.quarantine import StartFailure
from policy.submission import NodeName, UserName
from tests.support.kube.pods import PodBuilder, a_pod

AT = 1_767_225_605.0  # 2026-01-01T00:00:05Z


def _ended(key: str = "state", **fields: Any) -> dict[str, Any]:
    told = {
        "exitCode": 1,
        "reason": "Error",
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:00:05Z",
        **fields,
    }
    return {"containerStatuses": [{"name": "main", key: {"terminated": told}}]}


def _pod(phase: str = "Failed", **status: Any) -> PodBuilder:
    return a_pod("p").with_gpus(1).bound_to("n0").with_status(phase=phase, **status)


def _read(obj: PodBuilder) -> list[StartFailure]:
    pod = read_pod(obj)
    assert pod is not None
    found = list(read_start_failures(pod, obj))
    assert list(read_start_failures(pod, trim_pod(obj))) == found
    return found


def _failure(**fields: Any) -> StartFailure:
    account = UserName("system:serviceaccount:lab:default")
    known: dict[str, Any] = {"node": NodeName("n0"), "workload": "lab/p", "submitter": account}
    known |= {"at": AT, "lasted_seconds": 5.0}
    return StartFailure(**{**known, **fields})


@pytest.mark.parametrize("key", ["state", "lastState"])
def test_a_container_that_ended_with_an_error(key: str) -> None:
    assert _read(_pod("Running", **_ended(key))) == [_failure()]


def test_a_container_that_never_started() -> None:
    never = _ended(reason="StartError", startedAt="1970-01-01T00:00:00Z", exitCode=128)
    assert _read(_pod(**never)) == [_failure(lasted_seconds=0.0)]


@pytest.mark.parametrize("reason", ["UnexpectedAdmissionError", "OutOfnvidia.com/gpu"])
def test_a_pod_that_its_kubelet_refused(reason: str) -> None:
    refused = _pod(reason=reason, startTime="2026-01-01T00:00:05Z")
    assert _read(refused) == [_failure(lasted_seconds=0.0, is_by_node=True)]


@pytest.mark.parametrize(
    "pod",
    [
        _pod(**_ended(exitCode=0)),
        _pod(**_ended(reason="OOMKilled", exitCode=137)),
        _pod(**_ended(finishedAt=None)),
        _pod(**_ended()).being_deleted(),
        _pod(reason="Evicted"),
        _pod(reason="OutOfcpu"),
        _pod("Running", containerStatuses=[{"state": {"waiting": {"reason": "ErrImagePull"}}}]),
        _pod(containerStatuses="nonsense"),
        a_pod("p").with_gpus(1).with_status(phase="Failed", **_ended()),
    ],
    ids=[
        *("success", "memory", "no time", "told to end", "evicted", "short of CPU", "no image"),
        *("nonsense", "without a node"),
    ],
)
def test_what_is_no_failure_of_a_node(pod: PodBuilder) -> None:
    assert _read(pod) == []
