"""Preempted Jobs on a real control plane: suspended and resumed by their own controller's way."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any

import pytest
import pytest_asyncio

from tests.controlplane.api import ApiError, JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import poll_until
from tests.support.installed.gangs import (
    a_gang_pod,
    create,
    end,
    gang_pods,
    own_pods,
    running,
    told,
    until_empty,
)
from tests.support.installed.installation import Installation
from tests.support.installed.leaders import leader_of, two_extenders
from tests.support.installed.policies import promise_nodes
from tests.support.kube.objects import ObjectBuilder
from tests.support.kube.pods import a_new_pod
from tests.support.kube.workloads import a_template, a_workload

NODES = 2
MARK = "cellgate.io/reclaimed"


@pytest.fixture(scope="module")
def node_count() -> int:
    return NODES


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane) -> AsyncIterator[Installation]:
    """Cellgate with two extenders that may suspend workloads, and a VC promised everything."""
    async with two_extenders(plane, components=["gentle-reclaim"]) as installation:
        await promise_nodes(plane, NODES)
        yield installation


@pytest_asyncio.fixture(loop_scope="session")
async def pods(plane: ControlPlane, cellgate: Installation) -> AsyncIterator[str]:
    """The pods of a namespace of the test's own; no Job is left."""
    async with own_pods(plane) as path:
        yield path
        await plane.api.delete(_jobs(path), propagationPolicy="Background")


@pytest.fixture
def _task_watch() -> None:
    """Not here: kube-scheduler's connections through the forwarder outlive a test."""


def _jobs(pods: str) -> str:
    return f"/apis/batch/v1/namespaces/{pods.split('/')[4]}/jobs"


def _job(name: str, *, stop_for: str = "", **spec: Any) -> ObjectBuilder:
    """An opportunistic gang that takes all nodes, as a stock Job; its pods stop after that time."""
    pod = a_new_pod("unused").with_gpus(8).in_gang(name, size=NODES).of_class("oppo")
    pod = pod.with_spec(restartPolicy="Never")
    pod = pod.annotated("test.cellgate.io/stop-for", stop_for) if stop_for else pod
    counts = {"completions": NODES, "parallelism": NODES, "completionMode": "Indexed"}
    return a_workload("Job", name, template=a_template(pod), namespace=None, **counts, **spec)


async def _job_runs(plane: ControlPlane, pods: str, name: str) -> list[str]:
    """The pods of a Job, once all of them run; none of them ends."""

    async def found() -> list[str]:
        listed = await plane.api.list(pods, labelSelector=f"job-name={name}")
        up = [pod for pod in listed if pod["status"].get("phase") == "Running"]
        is_whole = len(up) == len(listed) == NODES
        return [pod["metadata"]["name"] for pod in up] if is_whole else []

    return await poll_until(found, deadline_seconds=20, explain=lambda: f"{name} does not run")


async def _phases(plane: ControlPlane, pods: str, name: str) -> list[str]:
    listed = await plane.api.list(pods, labelSelector=f"job-name={name}")
    return [pod["status"]["phase"] for pod in listed]


async def _events_of(plane: ControlPlane, pods: str, name: str, *, reason: str) -> list[str]:
    """The messages of Events on a Job, once there is one."""

    async def found() -> list[str]:
        events = (await plane.api.get(pods.removesuffix("pods") + "events"))["items"]
        about = [one for one in events if one["involvedObject"]["name"] == name]
        return [one["message"] for one in about if one["reason"] == reason]

    return await poll_until(found, deadline_seconds=10, explain=lambda: f"{name} heard nothing")


async def _until_job(
    plane: ControlPlane, pods: str, name: str, is_so: Callable[[JsonObject], object]
) -> JsonObject:
    return await plane.api.wait_until(f"{_jobs(pods)}/{name}", lambda job: bool(is_so(job)))


async def test_a_stock_job_is_reclaimed_eight_times_and_never_fails(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    await plane.api_as("bob").create(_jobs(pods), _job("low"))
    asked = (await plane.api.get(f"{_jobs(pods)}/low"))["metadata"]["creationTimestamp"]
    waits = []
    for turn in range(8):
        await _job_runs(plane, pods, "low")
        await create(plane, pods, gang_pods(f"high{turn}", size=NODES, gpus=8))
        await running(plane, pods, f"high{turn}", size=NODES)
        await _until_job(plane, pods, "low", lambda job: job["spec"]["suspend"] is False)
        await end(plane, pods, f"high{turn}", size=NODES)
        began = time.monotonic()
        await _job_runs(plane, pods, "low")
        waits.append(time.monotonic() - began)
    job = await plane.api.get(f"{_jobs(pods)}/low")
    assert job["status"].get("failed", 0) == 0
    mark = json.loads(job["metadata"]["annotations"][MARK])
    assert mark["times"] == 8
    assert abs(mark["first_asked"] - _seconds(asked)) < 5, "the age of the first pods is kept"
    assert max(waits) < 10, waits
    namespace = pods.split("/")[4]
    heard = await _events_of(plane, pods, "low", reason="Preempted")
    assert f"gang {namespace}/low is preempted by gang {namespace}/high7" in "\n".join(heard)
    decisions = await cellgate.decisions(f"{namespace}/low")
    assert any(one["outcome"] == "suspended" for one in decisions)
    await plane.api.delete(f"{_jobs(pods)}/low", propagationPolicy="Background")
    await until_empty(plane, pods)
    shown = await cellgate.inspect(f"/v1/explain/{namespace}/low")
    assert (shown["state"], shown["ended"]["way"]) == ("gone", "suspended")
    assert f"is preempted by gang {namespace}/high7" in shown["ended"]["why"]


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


async def test_a_later_leader_resumes_what_one_before_it_suspended(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    await plane.api_as("bob").create(_jobs(pods), _job("low", stop_for="7s"))
    await _job_runs(plane, pods, "low")
    await create(plane, pods, gang_pods("high", size=NODES, gpus=8))
    await _until_job(plane, pods, "low", lambda job: job["spec"]["suspend"] is True)
    leader = await leader_of(cellgate)
    cellgate.extenders[leader].kill()
    job = await plane.api.get(f"{_jobs(pods)}/low")
    assert job["spec"]["suspend"] is True, "its pods are still there"
    await leader_of(cellgate, other_than=leader)
    job = await _until_job(plane, pods, "low", lambda job: job["spec"]["suspend"] is False)
    assert job["metadata"]["labels"][MARK] == "resumed"
    await running(plane, pods, "high", size=NODES)
    assert (await plane.api.get(f"{_jobs(pods)}/low"))["status"].get("failed", 0) == 0
    await cellgate.start_extender(leader)


async def test_a_job_that_its_owner_suspends_meanwhile_stays_suspended(
    plane: ControlPlane, pods: str
) -> None:
    await plane.api_as("bob").create(_jobs(pods), _job("low", stop_for="4s"))
    await _job_runs(plane, pods, "low")
    await create(plane, pods, gang_pods("high", size=NODES, gpus=8))
    await _until_job(plane, pods, "low", lambda job: job["spec"]["suspend"] is True)
    own = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "low"}}
    text = json.dumps({**own, "spec": {"suspend": True}})
    namespace = pods.split("/")[4]
    await plane.kubectl("apply", "--server-side", "-n", namespace, "-f", "-", stdin=text)
    await running(plane, pods, "high", size=NODES)
    job = await _until_job(
        plane, pods, "low", lambda job: job["metadata"]["labels"][MARK] == "resumed"
    )
    assert job["spec"]["suspend"] is True, "Cellgate leaves it to its owner"


async def test_a_job_that_another_program_suspends_is_evicted_and_keeps_its_age(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    job = {**_job("low", suspend=False), "apiVersion": "batch/v1", "kind": "Job"}
    await plane.kubectl(
        "apply", "--server-side", "-n", pods.split("/")[4], "-f", "-", stdin=json.dumps(job)
    )
    await _job_runs(plane, pods, "low")
    await create(plane, pods, gang_pods("high", size=NODES, gpus=8))
    await running(plane, pods, "high", size=NODES)
    job = await _until_job(plane, pods, "low", lambda job: job["status"].get("failed"))
    assert job["spec"]["suspend"] is False
    assert MARK not in job["metadata"].get("annotations", {})
    (heard,) = await _events_of(plane, pods, "low", reason="Preempted")
    assert "is preempted by gang" in heard

    await plane.api_as("bob").create(_jobs(pods), _job("later"))
    leader = await leader_of(cellgate)
    cellgate.extenders[leader].kill()
    await _until_job(plane, pods, "low", lambda job: job["status"].get("active") == NODES)
    await leader_of(cellgate, other_than=leader)
    await asyncio.sleep(1)  # the new leader asks the ledger twice a second
    await end(plane, pods, "high", size=NODES)
    await _job_runs(plane, pods, "low")
    assert await _phases(plane, pods, "later") == ["Pending"] * NODES, "its pods are older"
    await cellgate.start_extender(leader)


async def test_a_victim_that_breaks_no_budget_is_preferred(plane: ControlPlane, pods: str) -> None:
    for name in ("old", "service"):  # the youngest would end first
        pod = a_gang_pod(name, 0, size=1, gpus=8).of_class("oppo")
        await create(plane, pods, [pod.labelled("app", name)])
        await running(plane, pods, name, size=1)
    budgets = f"/apis/policy/v1/namespaces/{pods.split('/')[4]}/poddisruptionbudgets"
    selector = {"matchLabels": {"app": "service"}}
    spec = {"minAvailable": 1, "selector": selector}
    await plane.api.create(budgets, {"metadata": {"name": "service"}, "spec": spec})
    is_counted = {"expectedPods": 1, "disruptionsAllowed": 0}.items()
    await plane.api.wait_until(
        f"{budgets}/service", lambda budget: is_counted <= budget.get("status", {}).items()
    )
    await asyncio.sleep(0.5)  # the extender hears of it, too
    await create(plane, pods, gang_pods("high", size=1, gpus=8))
    await running(plane, pods, "high", size=1)
    await running(plane, pods, "service", size=1)
    assert "breaks" not in await told(plane, pods, "old", reason="Preempted")
    await create(plane, pods, gang_pods("higher", size=1, gpus=8))
    await running(plane, pods, "higher", size=1)
    message = await told(plane, pods, "service", reason="Preempted")
    assert "is preempted by gang" in message
    assert "this breaks PodDisruptionBudget" in message


async def test_only_cellgate_may_write_the_mark(plane: ControlPlane, pods: str) -> None:
    job = _job("old", suspend=True)
    await plane.api_as("bob").create(_jobs(pods), job)
    for part in ("annotations", "labels"):
        with pytest.raises(ApiError, match="only Cellgate may change it"):
            await plane.api.patch(f"{_jobs(pods)}/old", {"metadata": {part: {MARK: "x"}}})
        with pytest.raises(ApiError, match="only Cellgate may change it"):
            await plane.api.create(_jobs(pods), _job("new").with_metadata(**{part: {MARK: "x"}}))
    await plane.api.patch(f"{_jobs(pods)}/old", {"metadata": {"labels": {"a": "b"}}})


async def test_a_suspended_elastic_job_is_resumed_with_the_first_size_that_fits(
    plane: ControlPlane, pods: str
) -> None:
    await create(plane, pods, gang_pods("first", size=1, gpus=8))
    await running(plane, pods, "first", size=1)
    job = _job("elastic", suspend=True)
    job["metadata"]["annotations"] = {"cellgate.io/alternatives": "[{members: 1}]"}
    await plane.api_as("bob").create(_jobs(pods), job)

    def is_resumed(found: JsonObject) -> bool:
        return not found["spec"]["suspend"]

    resumed = await plane.api.wait_until(f"{_jobs(pods)}/elastic", is_resumed)
    spec = resumed["spec"]
    assert (spec["parallelism"], spec["completions"]) == (1, 1)
    assert spec["template"]["metadata"]["labels"]["cellgate.io/gang-size"] == "1"
    assert resumed["metadata"]["labels"]["cellgate.io/elastic"] == "started"
    (message,) = await _events_of(plane, pods, "elastic", reason="SizeChosen")
    assert message.startswith("resumed with 1 member of 2: 2 members: ")

    async def runs() -> bool:
        return await _phases(plane, pods, "elastic") == ["Running"]

    await poll_until(runs, deadline_seconds=20, explain=lambda: "elastic does not run")


async def test_without_the_right_a_job_is_evicted(plane: ControlPlane, pods: str) -> None:
    """The last test of the module: the right stays away."""
    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cellgate-gentle-reclaim"
    await plane.api.delete(binding)
    await asyncio.sleep(0.5)  # the API server's copy of the rights
    await plane.api_as("bob").create(_jobs(pods), _job("low"))
    await _job_runs(plane, pods, "low")
    await create(plane, pods, gang_pods("high", size=NODES, gpus=8))
    await running(plane, pods, "high", size=NODES)
    await _until_job(plane, pods, "low", lambda job: job["status"].get("failed"))
