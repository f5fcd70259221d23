"""The life of a pod, from its metadata and status."""

import pytest

from kube import marks
from kube.lives.pod_lives import read_life
from kube.read.trimming import trim_pod
from policy.pod_life import Disruption, PodLife

_DAY = "2026-03-01T00:00"
_MIDNIGHT = 1772323200.0


_POD = {
    "metadata": {
        "creationTimestamp": f"{_DAY}:00Z",
        "deletionTimestamp": f"{_DAY}:50Z",
        "deletionGracePeriodSeconds": 30,
        "annotations": {marks.RUN_TIME_ANNOTATION: "1h30m"},
    },
    "spec": {
        "nodeName": "n1",
        "activeDeadlineSeconds": 7200,
        "containers": [{"name": "main", "image": "train:1"}, {"name": "b", "image": "other"}],
    },
    "status": {
        "phase": "Failed",
        "reason": "DeadlineExceeded",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "True",
                "lastTransitionTime": f"{_DAY}:05Z",
            },
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "PreemptionByScheduler",
                "message": "for another",
            },
        ],
        "containerStatuses": [
            {
                "name": "main",
                "restartCount": 2,
                "state": {
                    "terminated": {
                        "startedAt": f"{_DAY}:20Z",
                        "finishedAt": f"{_DAY}:30Z",
                        "exitCode": 137,
                        "reason": "Error",
                    }
                },
                "lastState": {
                    "terminated": {"startedAt": f"{_DAY}:08Z", "finishedAt": f"{_DAY}:15Z"}
                },
            }
        ],
    },
}


def test_a_pod_says_when_it_lived_and_how_it_ended() -> None:
    life = PodLife(
        created=_MIDNIGHT,
        bound=_MIDNIGHT + 5,
        started=_MIDNIGHT + 8,
        asked_to_end=_MIDNIGHT + 20,
        finished=_MIDNIGHT + 30,
        has_failed=True,
        status_reason="DeadlineExceeded",
        failure="container main ended with exit code 137 (Error)",
        disruption=Disruption("PreemptionByScheduler", "for another"),
        restarts=2,
        image="train:1",
        estimate_seconds=5400,
        limit_seconds=7200,
    )
    assert read_life(_POD) == life
    assert read_life(trim_pod(_POD)) == life


def test_a_pod_that_was_created_with_a_node_has_it_since_then() -> None:
    pod = {"metadata": {"creationTimestamp": f"{_DAY}:00Z"}, "spec": {"nodeName": "n1"}}
    assert read_life(pod) == PodLife(created=_MIDNIGHT, bound=_MIDNIGHT)


@pytest.mark.parametrize("wrong", [None, [], 7, "x", {"containerStatuses": 3, "conditions": "x"}])
def test_what_no_api_server_writes_counts_as_missing(wrong: object) -> None:
    pod = {"metadata": wrong, "spec": wrong, "status": wrong}
    assert read_life(pod) == PodLife(created=0.0)
