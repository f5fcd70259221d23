"""Which workloads may be suspended, and the mark that one carries."""

from typing import Any

import orjson
import pytest

from kube.marks import RECLAIMED_MARK
from kube.read import suspension
from kube.read.suspension import FIELD_MANAGER, SUSPENDABLE, ReclaimMark

CREATED = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T01:00:00Z"
JOB = SUSPENDABLE["batch", "Job"]
PYTORCH = SUSPENDABLE["kubeflow.org", "PyTorchJob"]
RAY = SUSPENDABLE["ray.io", "RayJob"]
LATER_KEY = "9b1f0a52-6f0e-4c0f-9a54-0a4f9be1c9d2"
KEY = "5a1f0a52-6f0e-4c0f-9a54-0a4f9be1c9d1"
MARK = ReclaimMark(why="why", gang="lab/low", decision=KEY, at=20.0, first_asked=10.0)


def a_job(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": CREATED, **metadata}, "spec": {}, "status": {}}


def an_owner(manager: str, *, operation: str = "Update", time: str = CREATED) -> dict[str, Any]:
    fields: dict[str, Any] = {"f:spec": {"f:suspend": {}}}
    return {"manager": manager, "operation": operation, "time": time, "fieldsV1": fields}


def was_suspended(job: dict[str, Any]) -> dict[str, Any]:
    return {**job, "status": {"conditions": [{"type": "Suspended", "status": "False"}]}}


@pytest.mark.parametrize(
    ("job", "is_free"),
    [
        (a_job(), True),
        (a_job(managedFields=[an_owner("kubectl-create")]), True),
        (a_job(managedFields=[an_owner("sdk", time=LATER)]), True),
        (was_suspended(a_job(managedFields=[an_owner("sdk", time=LATER)])), False),
        (was_suspended(a_job(managedFields=[an_owner(FIELD_MANAGER, time=LATER)])), True),
        (a_job(managedFields=[an_owner("flux", operation="Apply")]), False),
        (a_job(labels={"kueue.x-k8s.io/queue-name": "gpus"}), False),
        ({**a_job(), "spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}, False),
        ({**a_job(), "spec": {"managedBy": JOB.managed_by}}, True),
        (a_job(managedFields=[{"manager": "x"}, {"fieldsV1": {"f:spec": 3}}, "?"]), True),
    ],
    ids=[
        "nobody says anything",
        "its creator owns the default",
        "its creator has changed other fields",
        "another program has resumed it",
        "Cellgate has resumed it",
        "an explicit value is applied",
        "Kueue's label",
        "another controller",
        "its own controller",
        "content that no API server writes",
    ],
)
def test_a_workload_is_suspended_only_if_no_other_program_uses_the_field(
    job: dict[str, Any], *, is_free: bool
) -> None:
    assert (suspension.obstacle(job, JOB) is None) is is_free


@pytest.mark.parametrize(("spec", "is_free"), [({"suspend": False}, False), ({}, True)])
def test_a_manifest_of_kubectl_that_states_the_field_owns_it(
    spec: dict[str, Any], *, is_free: bool
) -> None:
    applied = orjson.dumps({"spec": spec}).decode()
    key = "kubectl.kubernetes.io/last-applied-configuration"
    assert (suspension.obstacle(a_job(annotations={key: applied}), JOB) is None) is is_free
    assert suspension.obstacle(a_job(annotations={key: "{"}), JOB) is None


def test_fields_are_where_the_kind_has_them() -> None:
    assert PYTORCH.patch(is_suspended=True) == {"spec": {"runPolicy": {"suspend": True}}}
    assert suspension.is_suspended({"spec": {"runPolicy": {"suspend": True}}}, PYTORCH)
    owner = {"manager": "x", "operation": "Apply"}
    fields: dict[str, Any] = {"fieldsV1": {"f:spec": {"f:runPolicy": {"f:suspend": {}}}}}
    assert suspension.obstacle(a_job(managedFields=[owner | fields]), PYTORCH) is not None


def test_a_ray_job_that_would_keep_its_cluster_is_not_suspended() -> None:
    assert suspension.obstacle(a_job(), RAY) is not None
    assert suspension.obstacle({"spec": {"shutdownAfterJobFinishes": True}}, RAY) is None
    assert suspension.has_suspended({"status": {"jobDeploymentStatus": "Suspended"}})
    assert suspension.has_ended({"status": {"jobDeploymentStatus": "Complete"}})


def test_a_mark_keeps_the_age_of_the_one_before() -> None:
    later = ReclaimMark(why="again", gang="lab/low", decision=LATER_KEY, at=40.0, first_asked=30.0)
    both = later.following(MARK)
    assert (both.first_asked, both.times, both.why) == (10.0, 2, "again")
    read = ReclaimMark.of(a_job(annotations={RECLAIMED_MARK: both.to_text()}))
    assert read == both


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"why": 1}', None])
def test_a_mark_that_cellgate_did_not_write_is_none(text: str | None) -> None:
    assert ReclaimMark.of(a_job(annotations={RECLAIMED_MARK: text})) is None


def test_the_decision_of_a_mark_is_checked() -> None:
    text = MARK.to_text().replace(KEY, "no key of the log")
    assert ReclaimMark.of(a_job(annotations={RECLAIMED_MARK: text})) is None


def test_numbers_of_a_mark_are_checked() -> None:
    text = MARK.to_text().replace("10.0", '"long ago"')
    assert ReclaimMark.of(a_job(annotations={RECLAIMED_MARK: text})) is None
