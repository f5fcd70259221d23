"""Members that are created only after others are Ready: where workloads say it."""

from typing import Any

import pytest

from kube import marks
from kube.read.late_members import find_late, format_late, late_of, parse_late
from kube.read.pods import read_pod
from policy.errors import RequestError
from tests.support.kube.pods import a_new_pod, a_pod
from tests.support.kube.workloads import a_template

LABELS = {marks.GANG_LABEL: "bert", marks.GANG_SIZE_LABEL: "4"}


def _template(gpus: int) -> dict[str, Any]:
    pod = a_new_pod("unused").with_gpus(gpus) if gpus else a_new_pod("unused")
    return a_template(pod.in_gang("bert", size=4))


def _job(name: str, *, parallelism: int, **fields: Any) -> dict[str, Any]:
    inner = {"parallelism": parallelism, "template": _template(8)}
    return {"name": name, "template": {"spec": inner}, **fields}


def _late(version: str, kind: str, spec: Any) -> tuple[int, ...]:
    return late_of(find_late({"apiVersion": version, "kind": kind, "spec": spec}), LABELS)


def test_jobs_of_a_job_set_that_depend_on_others_are_late() -> None:
    after = [{"name": "driver", "status": "Ready"}]
    jobs = [_job("driver", parallelism=1), _job("w", parallelism=2, replicas=2, dependsOn=after)]
    spec: dict[str, Any] = {"replicatedJobs": jobs}
    assert _late("jobset.x-k8s.io/v1alpha2", "JobSet", spec) == (8, 8, 8, 8)
    jobs[1].pop("dependsOn")
    assert _late("jobset.x-k8s.io/v1alpha2", "JobSet", spec) == ()
    spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    assert _late("jobset.x-k8s.io/v1alpha2", "JobSet", spec) == (8, 8, 8, 8)


def test_the_launcher_of_an_mpi_job_may_be_late() -> None:
    replicas = {"Launcher": {"template": _template(0)}, "Worker": {"template": _template(8)}}
    spec = {"launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": replicas}
    assert _late("kubeflow.org/v2beta1", "MPIJob", spec) == (0,)
    assert _late("kubeflow.org/v2beta1", "MPIJob", {"mpiReplicaSpecs": replicas}) == ()


def test_a_launcher_that_is_no_member_is_not_late() -> None:
    replicas = {"Launcher": {"template": a_template(a_new_pod("unused"))}}
    spec = {"launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": replicas}
    assert _late("kubeflow.org/v2beta1", "MPIJob", spec) == ()


def test_workers_may_wait_for_their_leader() -> None:
    group = {"size": 4, "workerTemplate": _template(8)}
    spec = {"startupPolicy": "LeaderReady", "leaderWorkerTemplate": group}
    assert _late("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec) == (8, 8, 8)


def test_tasks_of_volcano_may_depend_on_others() -> None:
    task = {"replicas": 2, "dependsOn": {"name": ["mpimaster"]}, "template": _template(4)}
    assert _late("batch.volcano.sh/v1alpha1", "Job", {"tasks": [task]}) == (4, 4)
    assert _late("batch/v1", "Job", {"tasks": [task]}) == ()


@pytest.mark.parametrize("spec", [None, [], {"replicatedJobs": 7}, {"replicatedJobs": [None, {}]}])
def test_an_object_that_is_not_as_expected_has_none(spec: Any) -> None:
    assert _late("jobset.x-k8s.io/v1alpha2", "JobSet", spec) == ()


def test_late_members_of_another_gang_do_not_count() -> None:
    group = {"size": 4, "workerTemplate": _template(8)}
    spec = {"startupPolicy": "LeaderReady", "leaderWorkerTemplate": group}
    kind = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    assert late_of(find_late({**kind, "spec": spec}), {marks.GANG_LABEL: "other"}) == ()


@pytest.mark.parametrize(("mark", "late"), [("2x8,1x0", (8, 8, 0)), ("3", (-1, -1, -1)), ("0", ())])
def test_a_mark_is_read_and_written(mark: str, late: tuple[int, ...]) -> None:
    assert parse_late(mark) == late
    assert parse_late(format_late(late) or "0") == late


@pytest.mark.parametrize("mark", ["x", "-1", "1x", "1,2", "999999", "4", "2x8,2x8"])
def test_a_mark_that_leaves_no_member_to_start_with_is_refused(mark: str) -> None:
    pod = a_pod().with_gpus(8).in_gang("bert", size=4).annotated(marks.LATE_ANNOTATION, mark)
    with pytest.raises(RequestError, match="must be fewer than 4"):
        read_pod(pod)
