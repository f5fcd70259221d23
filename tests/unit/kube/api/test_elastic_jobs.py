"""Elastic Jobs in the API server: all are found, however many there are."""

from typing import Any, cast

import pytest

from kube.admission.elastic_jobs import elastic_patch
from kube.api.client import KubeClient, KubeError
from kube.api.elastic_jobs import ElasticJobs
from policy.errors import RequestError
from tests.support.kube.pods import a_new_pod
from tests.support.kube.workloads import a_template, a_workload


def _a_job(name: str, created: str) -> dict[str, Any]:
    pod = a_new_pod("unused").with_gpus(8).in_gang(name, size=8)
    spec: dict[str, Any] = {"completions": 8, "parallelism": 8, "completionMode": "Indexed"}
    spec["suspend"] = True
    job = dict(a_workload("Job", name, template=a_template(pod), **spec))
    told = {"cellgate.io/alternatives": "[{members: 4}]"}
    job["metadata"] |= {"annotations": told, "creationTimestamp": created}
    return job


class _Pages:
    """An API server that answers with one Job at a time."""

    def __init__(self, *jobs: dict[str, Any]) -> None:
        self._jobs = jobs

    async def request(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        query = given["query"]
        place = int(query.get("continue", "0"))
        more = {"continue": str(place + 1)} if place + 1 < len(self._jobs) else {}
        return {"items": [self._jobs[place]], "metadata": more}


async def test_all_pages_are_read_and_the_oldest_job_is_first() -> None:
    """The API server sorts by name: else the Jobs of one namespace hide those of all others."""
    pages = _Pages(_a_job("a", "2026-11-18T12:00:00Z"), _a_job("b", "2026-11-18T11:00:00Z"))
    jobs = ElasticJobs(cast(KubeClient, pages), check_leading=lambda: None)

    assert [one.job["metadata"]["name"] for one in await jobs.list()] == ["b", "a"]


class _Stored(_Pages):
    """An API server that keeps what is written, and may refuse it."""

    def __init__(self, *jobs: dict[str, Any], refuses: int = 0) -> None:
        super().__init__(*jobs)
        self.patches: list[tuple[str, Any]] = []
        self._refuses = refuses

    async def request(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        if method == "GET":
            return await super().request(method, path, **given)
        if self._refuses:
            raise KubeError("PATCH: spec.maxFailedIndexes is wrong", status=self._refuses)
        self.patches.append((path, given["body"]))
        return {}


@pytest.mark.parametrize(
    ("suspend", "status"),
    [(False, {}), (True, {"failed": 1}), (True, {"completedIndexes": "0"}), (True, {"active": 1})],
)
async def test_job_that_its_owner_resumes_counts_as_started(
    suspend: bool, status: dict[str, Any]
) -> None:
    """Its owner may suspend it again: then it stays suspended, and keeps its size."""
    job = _a_job("a", "2026-11-18T12:00:00Z") | {"status": status}
    job["spec"]["suspend"] = suspend
    stored = _Stored(job)
    jobs = ElasticJobs(cast(KubeClient, stored), check_leading=lambda: None)

    assert await jobs.list() == []
    ((path, body),) = stored.patches
    assert path.endswith("/jobs/a")
    assert body["metadata"]["labels"] == {"cellgate.io/elastic": "started"}
    assert "spec" not in body


@pytest.mark.parametrize("status", [400, 403, 422])
async def test_refused_change_is_about_the_job(status: int) -> None:
    stored = _Stored(_a_job("a", "2026-11-18T12:00:00Z"), refuses=status)
    jobs = ElasticJobs(cast(KubeClient, stored), check_leading=lambda: None)
    (job,) = await jobs.list()

    with pytest.raises(RequestError, match="the API server refuses the change: PATCH: spec"):
        await jobs.start(job, 4)


@pytest.mark.parametrize("status", [0, 401, 429, 500])
async def test_failed_change_is_tried_again(status: int) -> None:
    stored = _Stored(_a_job("a", "2026-11-18T12:00:00Z"), refuses=status or 503)
    jobs = ElasticJobs(cast(KubeClient, stored), check_leading=lambda: None)
    (job,) = await jobs.list()

    with pytest.raises(KubeError):
        await jobs.start(job, 4)


def test_label_with_too_many_digits_is_no_number() -> None:
    """Python refuses to read a number of 5,000 digits; the API server refuses the label."""
    job = _a_job("a", "2026-11-18T12:00:00Z")
    job["spec"]["template"]["metadata"]["labels"]["cellgate.io/gang-min"] = "1" * 5_000

    assert elastic_patch(job)
