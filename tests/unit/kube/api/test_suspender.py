"""Suspending and resuming a workload, on an API server that keeps one object."""

from copy import deepcopy
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

import pytest

from kube.api.client import KubeError
from kube.api.suspender import CannotSuspendError, EndsWith, Resumption, WorkloadSuspender
from kube.marks import DECISION_ANNOTATION, JOB_UID_LABEL, RECLAIMED_MARK, SUBMITTER_ANNOTATION
from kube.read.suspension import ReclaimMark
from kube.read.workloads import Workload

UID = "6f0c0000-0000-0000-0000-000000000000"
JOB = Workload(group="batch", kind="Job", name="low", uid=UID)
PATH = "/apis/batch/v1/namespaces/lab/jobs/low"
LATER_KEY = "9b1f0a52-6f0e-4c0f-9a54-0a4f9be1c9d2"
KEY = "5a1f0a52-6f0e-4c0f-9a54-0a4f9be1c9d1"
MARK = ReclaimMark(why="why", gang="lab/low", decision=KEY, at=20.0, first_asked=10.0)


def a_pod(name: str, **metadata: Any) -> dict[str, Any]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "low", "uid": UID, "controller": True}
    return {"metadata": {"name": name, "uid": name, "ownerReferences": [owner], **metadata}}


class OneJob:
    """An API server with one Job, whose controller suspends it at once."""

    def __init__(self) -> None:
        self.version = 1
        self.conflicts = 0
        self.forbidden = False
        self.controls = True
        self.pods: list[dict[str, Any]] = [a_pod("a"), a_pod("b")]
        self.job: dict[str, Any] = {
            "metadata": {
                "name": "low", "namespace": "lab", "uid": UID,
                "creationTimestamp": "1970-01-01T00:00:05Z",
            },
            "spec": {"suspend": False},
            "status": {},
        }  # fmt: skip

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
        content_type: str = "",
        accept: str = "",
    ) -> dict[str, Any]:
        if path == "/apis/batch":
            return {"versions": [{"version": "v1"}]}
        if path == "/apis/batch/v1":
            return {"resources": [{"name": "jobs/status", "kind": "Job"}, *_JOBS]}
        if path == "/api/v1/namespaces/lab/pods":
            assert query is not None
            assert query["labelSelector"] == f"{JOB_UID_LABEL}={UID}"
            return {"items": deepcopy(self.pods)}
        if path == "/apis/batch/v1/jobs":
            assert query is not None
            assert query["labelSelector"] == RECLAIMED_MARK
            return {"metadata": {}, "items": [deepcopy(self.job)]}
        if path != PATH:
            raise KubeError("missing", status=404)
        if self.forbidden:
            raise KubeError("forbidden", status=403)
        if method == "PATCH":
            self._patch(body or {})
        self.job["metadata"]["resourceVersion"] = str(self.version)
        return deepcopy(self.job)

    def _patch(self, body: dict[str, Any]) -> None:
        self.conflicts -= 1
        if self.conflicts >= 0 or body["metadata"]["resourceVersion"] != str(self.version):
            raise KubeError("conflict", status=409)
        self.version += 1
        for part in ("labels", "annotations"):
            self.job["metadata"].setdefault(part, {}).update(body["metadata"].get(part, {}))
        self.job["spec"].update(body.get("spec", {}))
        if self.controls and self.job["spec"]["suspend"]:
            self.job["status"] = {"conditions": [{"type": "Suspended", "status": "True"}]}


_JOBS = ({"name": "jobs", "kind": "Job"},)


@pytest.fixture
def api() -> OneJob:
    return OneJob()


@pytest.fixture
def suspender(api: OneJob) -> WorkloadSuspender:
    return WorkloadSuspender(
        api,  # type: ignore[arg-type] # all that it uses
        check_leading=lambda: None,
        monotonic=lambda: 0.0,
    )


async def _suspend(suspender: WorkloadSuspender, **how: Any) -> ReclaimMark:
    ends = EndsWith(
        includes=lambda uid, is_decided: is_decided or uid in ("a", "b"), controllers=[UID]
    )
    arguments = {"namespace": "lab", "mark": MARK, "ends": ends, "is_wanted": lambda: True, **how}
    return await suspender.suspend(JOB, **arguments)


async def test_a_workload_is_suspended_found_and_resumed(
    api: OneJob, suspender: WorkloadSuspender
) -> None:
    assert await _suspend(suspender) == MARK
    assert api.job["spec"] == {"suspend": True}
    (found,) = await suspender.marked("batch", "Job")
    assert (found.workload, found.mark, found.created, found.is_suspended) == (JOB, MARK, 5.0, True)
    assert await suspender.resume(JOB, namespace="lab") is Resumption.DONE
    assert api.job["spec"] == {"suspend": False}
    assert api.job["metadata"]["labels"] == {RECLAIMED_MARK: "resumed"}
    assert [one.is_suspended for one in await suspender.marked("batch", "Job")] == [False]


async def test_a_workload_with_a_pod_that_need_not_end_is_not_suspended(
    api: OneJob, suspender: WorkloadSuspender
) -> None:
    api.pods.append(a_pod("ends", deletionTimestamp="2026-01-01T00:00:00Z"))
    api.pods.append(a_pod("new", annotations={DECISION_ANNOTATION: "x"}))
    api.pods.append({"metadata": {"name": "of another workload", "uid": "c"}})
    await _suspend(suspender)
    await suspender.resume(JOB, namespace="lab")
    api.pods.append(a_pod("driver"))
    with pytest.raises(CannotSuspendError, match="pod driver need not end"):
        await _suspend(suspender)
    assert api.job["spec"]["suspend"] is False


async def test_a_second_reclaim_keeps_the_age(api: OneJob, suspender: WorkloadSuspender) -> None:
    await _suspend(suspender)
    await suspender.resume(JOB, namespace="lab")
    later = ReclaimMark(why="why", gang="lab/low", decision=LATER_KEY, at=60.0, first_asked=50.0)
    again = await _suspend(suspender, mark=later)
    assert (again.first_asked, again.times, again.decision) == (10.0, 2, LATER_KEY)


async def test_a_suspension_of_the_leader_before_is_taken_over(
    api: OneJob, suspender: WorkloadSuspender
) -> None:
    await _suspend(suspender)
    later = ReclaimMark(why="other", gang="lab/low", decision=LATER_KEY, at=60.0, first_asked=50.0)
    assert await _suspend(suspender, mark=later) == MARK


async def test_a_conflict_is_tried_again(api: OneJob, suspender: WorkloadSuspender) -> None:
    api.conflicts = 2
    assert await _suspend(suspender) == MARK
    api.conflicts = 3
    await suspender.resume(JOB, namespace="lab")
    assert api.job["spec"]["suspend"] is True, "nothing was overwritten"


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"suspend": True}},
        {"status": {"conditions": [{"type": "Complete", "status": "True"}]}},
        {"spec": {"suspend": False, "managedBy": "others"}},
    ],
    ids=["its owner has suspended it", "finished", "another controller"],
)
async def test_what_must_not_be_suspended_is_left_alone(
    api: OneJob, suspender: WorkloadSuspender, change: dict[str, Any]
) -> None:
    api.job |= change
    with pytest.raises(CannotSuspendError):
        await _suspend(suspender)
    assert api.version == 1


async def test_a_new_object_of_the_same_name_is_left_alone(
    api: OneJob, suspender: WorkloadSuspender
) -> None:
    api.job["metadata"]["uid"] = "another"
    with pytest.raises(CannotSuspendError):
        await _suspend(suspender)
    assert await suspender.resume(JOB, namespace="lab") is Resumption.LEFT


async def test_what_need_not_end_any_more_is_left_alone(
    api: OneJob, suspender: WorkloadSuspender
) -> None:
    with pytest.raises(CannotSuspendError):
        await _suspend(suspender, is_wanted=lambda: False)
    assert api.version == 1


async def test_a_workload_is_resumed_only_once_its_controller_has_suspended_it(
    api: OneJob, suspender: WorkloadSuspender
) -> None:
    api.controls = False
    await _suspend(suspender)
    assert await suspender.resume(JOB, namespace="lab") is Resumption.NOT_YET
    assert api.job["spec"]["suspend"] is True


@pytest.mark.parametrize("is_taken", [True, False], ids=["taken over", "resumed by its owner"])
async def test_a_workload_that_its_owner_decides_about_is_not_resumed(
    api: OneJob, suspender: WorkloadSuspender, *, is_taken: bool
) -> None:
    await _suspend(suspender)
    if is_taken:
        entry = {"manager": "flux", "operation": "Apply"}
        api.job["metadata"]["managedFields"] = [entry | {"fieldsV1": {"f:spec": {"f:suspend": {}}}}]
    else:
        api.job["spec"]["suspend"] = False
    assert await suspender.resume(JOB, namespace="lab") is Resumption.LEFT
    assert api.job["spec"]["suspend"] is is_taken
    assert await suspender.resume(JOB, namespace="lab") is Resumption.LEFT


OWNED: dict[str, Any] = {"f:spec": {"f:suspend": {}}}


@pytest.mark.parametrize("condition", [True, False], ids=["it shows that", "it shows nothing"])
async def test_a_workload_that_its_owner_has_suspended_again_stays_suspended(
    api: OneJob, suspender: WorkloadSuspender, *, condition: bool
) -> None:
    await _suspend(suspender)
    # She resumed it and suspended it again: so her program took the field over from Cellgate.
    later = {"operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": OWNED}
    api.job["metadata"]["managedFields"] = [{"manager": "kubectl-patch", **later}]
    if not condition:
        api.job["status"] = {"jobDeploymentStatus": "Suspended"}  # as a RayJob tells it
    assert await suspender.resume(JOB, namespace="lab") is Resumption.LEFT
    assert api.job["spec"]["suspend"] is True
    assert [one.is_suspended for one in await suspender.marked("batch", "Job")] == [False]


async def test_a_field_that_is_still_ours_is_resumed(
    api: OneJob, suspender: WorkloadSuspender
) -> None:
    await _suspend(suspender)
    ours = {"manager": "cellgate-reclaim", "operation": "Update", "fieldsV1": OWNED}
    others = {"manager": "kubectl-label", "operation": "Update", "fieldsV1": {"f:metadata": {}}}
    api.job["metadata"]["managedFields"] = [others, ours]
    assert await suspender.resume(JOB, namespace="lab") is Resumption.DONE


async def test_the_submitter_of_a_workload_is_read_from_its_templates(
    api: OneJob, suspender: WorkloadSuspender
) -> None:
    await _suspend(suspender)
    (found,) = await suspender.marked("batch", "Job")
    assert found.submitter == ""
    stamped = {"metadata": {"annotations": {SUBMITTER_ANNOTATION: "alice"}}}
    api.job["spec"]["replicatedJobs"] = [{"template": {"spec": {"template": stamped}}}] * 2
    (found,) = await suspender.marked("batch", "Job")
    assert found.submitter == "alice"
    api.job["spec"]["template"] = {"metadata": {"annotations": {SUBMITTER_ANNOTATION: "bob"}}}
    (found,) = await suspender.marked("batch", "Job")
    assert found.submitter == "", "two submitters are none"


class OneJobSet:
    """An API server with a JobSet that has two Jobs: workers, and a driver without devices."""

    def __init__(self) -> None:
        self.is_suspended = False
        self.pods = [_controlled("worker", by="Job/workers"), _controlled("else", by="Job/else")]
        self.jobs = [
            _controlled("workers", by="JobSet/set"),
            _controlled("driver", by="JobSet/set"),
            _controlled("else"),
        ]

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        found: dict[str, Any] = {
            "/apis/batch": {"versions": [{"version": "v1"}]},
            "/apis/batch/v1": {"resources": [*_JOBS]},
            "/apis/jobset.x-k8s.io": {"versions": [{"version": "v1alpha2"}]},
            "/apis/jobset.x-k8s.io/v1alpha2": {
                "resources": [{"name": "jobsets", "kind": "JobSet"}]
            },
            "/api/v1/namespaces/lab/pods": {"items": self.pods},
            "/apis/batch/v1/namespaces/lab/jobs": {"items": self.jobs},
            "/apis/jobset.x-k8s.io/v1alpha2/namespaces/lab/jobsets/set": {
                **_controlled("set", version="1"),
                "spec": {"suspend": self.is_suspended},
            },
        }
        self.is_suspended |= method == "PATCH"
        if path not in found:
            raise KubeError("missing", status=404)
        return deepcopy(found[path])


def _uid(name: str) -> str:
    return str(uuid5(NAMESPACE_DNS, name))


def _controlled(name: str, *, by: str = "", version: str = "") -> dict[str, Any]:
    kind, _, owner = by.partition("/")
    reference = {"apiVersion": "batch/v1", "kind": kind, "name": owner, "uid": _uid(owner)}
    references = [{**reference, "controller": True}] if by else []
    told = {"name": name, "uid": _uid(name), "resourceVersion": version}
    return {"metadata": {**told, "ownerReferences": references}}


async def test_a_workload_with_a_driver_under_another_child_is_not_suspended() -> None:
    api = OneJobSet()
    suspender = WorkloadSuspender(
        api,  # type: ignore[arg-type] # all that it uses
        check_leading=lambda: None,
        monotonic=lambda: 0.0,
    )
    job_set = Workload(group="jobset.x-k8s.io", kind="JobSet", name="set", uid=_uid("set"))
    ends = EndsWith(
        includes=lambda uid, _: uid == _uid("worker"), controllers=[_uid("workers"), _uid("set")]
    )
    asked: Any = {"namespace": "lab", "mark": MARK, "ends": ends, "is_wanted": lambda: True}
    api.pods.append(_controlled("driver-0", by="Job/driver"))
    with pytest.raises(CannotSuspendError, match="pod driver-0 need not end"):
        await suspender.suspend(job_set, **asked)
    assert not api.is_suspended
    api.pods.pop()
    await suspender.suspend(job_set, **asked)
    assert api.is_suspended


async def test_kinds_that_may_not_be_read_are_not_listed(
    api: OneJob, suspender: WorkloadSuspender
) -> None:
    api.forbidden = True
    assert await suspender.marked("batch", "Job") == []  # it has no mark
    assert await suspender.marked("ray.io", "RayJob") == []  # no such kind exists
    with pytest.raises(KubeError):
        await _suspend(suspender)
