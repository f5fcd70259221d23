"""Owner chains: resolved once per link, and never a reason to fail."""

import asyncio
from typing import Any

import pytest

from kube.api.client import KubeClient, KubeError
from kube.follow.owners import OwnerChains
from tests.support.kube.objects import ObjectBuilder
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.kube.workloads import a_stored_owner


class Api(KubeClient):
    """Has these objects, and counts what it is asked for."""

    def __init__(self, *objects: ObjectBuilder) -> None:
        self.objects = {one["metadata"]["name"]: one for one in objects}
        self.asked: list[str] = []
        self.status = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        self.asked.append(path)
        await self.gate.wait()
        name = path.rpartition("/")[2]
        if self.status or name not in self.objects:
            raise KubeError(path, status=self.status or 404)
        return dict(self.objects[name])


class Time:
    """A clock that stands still."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def _top(owners: OwnerChains, pod: PodBuilder) -> str:
    return str(await owners.resolve(pod, namespace="lab"))


async def test_the_topmost_controller_is_found_with_one_request_for_each_link() -> None:
    job = a_stored_owner("set-workers-0", kind="Job").controlled_by(
        "JobSet", "set", api_version="jobset.x-k8s.io/v1alpha2"
    )
    api = Api(job, a_stored_owner("set", kind="JobSet"))
    owners = OwnerChains(api, monotonic=Time())
    for name in ("a", "b", "c"):
        assert await _top(owners, a_pod(name).controlled_by("Job", "set-workers-0")) == "JobSet set"
    assert api.asked == [
        "/apis/batch/v1/namespaces/lab/jobs/set-workers-0",
        "/apis/jobset.x-k8s.io/v1alpha2/namespaces/lab/jobsets/set",
    ]


async def test_runs_of_a_cron_job_are_workloads_of_their_own() -> None:
    api = Api(a_stored_owner("nightly-1").controlled_by("CronJob", "nightly"))
    owners = OwnerChains(api, monotonic=Time())
    assert await _top(owners, a_pod().controlled_by("Job", "nightly-1")) == "Job nightly-1"


async def test_pods_that_come_at_once_share_a_request() -> None:
    api = Api(a_stored_owner("a").controlled_by("JobSet", "set", api_version="jobset.x-k8s.io/v1"))
    api.gate.clear()
    owners = OwnerChains(api, monotonic=Time())
    pods = [_top(owners, a_pod(f"p{number}").controlled_by("Job", "a")) for number in range(5)]
    tasks = [asyncio.create_task(pod) for pod in pods]
    await asyncio.sleep(0)
    api.gate.set()
    assert set(await asyncio.gather(*tasks)) == {"JobSet set"}
    assert len(api.asked) == 2


async def test_the_last_link_counts_if_the_next_cannot_be_read() -> None:
    time = Time()
    api = Api(a_stored_owner("a").controlled_by("JobSet", "set", api_version="jobset.x-k8s.io/v1"))
    api.status = 403
    owners = OwnerChains(api, monotonic=time)
    assert await _top(owners, a_pod().controlled_by("Job", "a")) == "Job a"
    api.status = 0
    assert await _top(owners, a_pod().controlled_by("Job", "a")) == "Job a", (
        "as its siblings a moment ago"
    )
    assert len(api.asked) == 1
    time.seconds = 11
    assert await _top(owners, a_pod().controlled_by("Job", "a")) == "JobSet set"


async def test_a_link_that_the_api_server_does_not_give_now_is_an_error() -> None:
    api = Api(a_stored_owner("a").controlled_by("JobSet", "set", api_version="jobset.x-k8s.io/v1"))
    owners = OwnerChains(api, monotonic=Time())
    for status in (500, 429):
        api.status = status
        with pytest.raises(KubeError):
            await _top(owners, a_pod().controlled_by("Job", "a"))
    api.status = 0
    assert await _top(owners, a_pod().controlled_by("Job", "a")) == "JobSet set"


async def test_an_answer_after_the_time_limit_serves_the_next_pod() -> None:
    api = Api(a_stored_owner("a").controlled_by("JobSet", "set", api_version="jobset.x-k8s.io/v1"))
    api.gate.clear()
    owners = OwnerChains(api, monotonic=Time())
    try:
        async with asyncio.timeout(0.01):
            await _top(owners, a_pod().controlled_by("Job", "a"))
    except TimeoutError:
        pass
    assert str(owners.known(a_pod().controlled_by("Job", "a"), namespace="lab")) == "Job a"
    api.gate.set()
    assert await _top(owners, a_pod().controlled_by("Job", "a")) == "JobSet set"
    assert api.asked.count("/apis/batch/v1/namespaces/lab/jobs/a") == 1


async def test_another_object_of_the_same_name_is_not_the_owner() -> None:
    api = Api(
        a_stored_owner("a", uid_name="another").controlled_by("JobSet", "set", api_version="x/v1")
    )
    owners = OwnerChains(api, monotonic=Time())
    assert await _top(owners, a_pod().controlled_by("Job", "a")) == "Job a"


async def test_a_reference_from_another_namespace_finds_nothing() -> None:
    api = Api(a_stored_owner("a").controlled_by("JobSet", "set", api_version="jobset.x-k8s.io/v1"))
    owners = OwnerChains(api, monotonic=Time())
    pod = a_pod().controlled_by("Job", "a")
    assert await _top(owners, pod) == "JobSet set"
    api.objects.clear()
    assert str(await owners.resolve(pod, namespace="other")) == "Job a"
    assert api.asked[-1] == "/apis/batch/v1/namespaces/other/jobs/a"
    assert str(owners.known(pod, namespace="other")) == "Job a"


async def test_an_object_without_a_controller_is_asked_for_again_after_some_minutes() -> None:
    time, api = Time(), Api(a_stored_owner("a", kind="ReplicaSet"))
    owners = OwnerChains(api, monotonic=time)
    pod = a_pod().controlled_by("ReplicaSet", "a", api_version="apps/v1")
    assert await _top(owners, pod) == "ReplicaSet a"
    adopted = a_stored_owner("a", kind="ReplicaSet")
    api.objects["a"] = adopted.controlled_by("Deployment", "web", api_version="apps/v1")
    time.seconds = 299
    assert await _top(owners, pod) == "ReplicaSet a"
    assert len(api.asked) == 1
    time.seconds = 300
    assert await _top(owners, pod) == "Deployment web"


async def test_a_chain_in_a_circle_ends() -> None:
    job = a_stored_owner("a").controlled_by("Loop", "b", api_version="x/v1")
    api = Api(job, a_stored_owner("b").controlled_by("Job", "a"))
    assert (
        await _top(OwnerChains(api, monotonic=Time()), a_pod().controlled_by("Job", "a"))
        == "Loop b"
    )


async def test_a_pod_without_a_controller_has_no_workload() -> None:
    assert await OwnerChains(Api(), monotonic=Time()).resolve(a_pod(), namespace="lab") is None
