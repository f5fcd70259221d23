"""The history of runs on a real control plane: whole lives, and many of them under chaos.

`make history-chaos` runs 500 gangs; the tests run a few, until each fault has struck.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count, takewhile
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from kube import marks
from state.database.database import open_database
from state.history.facts import Certainty, GangFacts
from state.log.postgres import PostgresDecisions
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import poll_until
from tests.support.installed.database_faults import hang_database, kill_connections
from tests.support.installed.gangs import a_gang_pod, create, end, gang_pods, own_pods, running
from tests.support.installed.installation import Installation
from tests.support.installed.leaders import depose, leader_of, two_extenders
from tests.support.installed.patience import do_once, wait_patiently
from tests.support.installed.policies import promise_nodes
from tests.support.kube.objects import ObjectBuilder
from tests.support.kube.pods import a_new_pod
from tests.support.kube.workloads import a_template, a_workload
from tests.support.state.records import a_decision

NODES = 3
_GANGS = int(os.environ.get("HISTORY_GANGS", "12"))
_PATIENCE_SECONDS = 90.0
_AT_ONCE = min(12, _GANGS // 3)
_DELETED_EVERY = 5
"""One gang in so many is deleted while it runs."""


@pytest.fixture(scope="module")
def node_count() -> int:
    return NODES


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane) -> AsyncIterator[Installation]:
    """Cellgate with two extenders, and a VC that is promised everything."""
    async with two_extenders(plane) as installation:
        await promise_nodes(plane, NODES)
        yield installation


@pytest_asyncio.fixture(loop_scope="session")
async def pods(plane: ControlPlane, cellgate: Installation) -> AsyncIterator[str]:
    """The pods of a namespace of the test's own."""
    async with own_pods(plane) as path:
        yield path


@pytest.fixture
def _task_watch() -> None:
    """Not here: kube-scheduler's connections through the forwarder outlive a test."""


def _job(name: str) -> ObjectBuilder:
    """An opportunistic gang, as a stock Job."""
    pod = a_new_pod("unused").with_gpus(8).in_gang(name, size=2).of_class("oppo").ending_at_once()
    pod = pod.annotated(marks.RUN_TIME_ANNOTATION, "1h").labelled("team", "vision")
    pod = pod.with_spec(restartPolicy="Never", activeDeadlineSeconds=7200)
    counts = {"completions": 2, "parallelism": 2, "completionMode": "Indexed"}
    return a_workload("Job", name, template=a_template(pod), namespace=None, **counts)


async def _runs(cellgate: Installation, query: str) -> list[dict[str, Any]]:
    """The runs that a query finds, the oldest first; none while the history cannot be read."""
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        page = await cellgate.inspect(f"/v1/runs?limit=1000&members=true&{query}{after}")
        found += page["items"]
        if "next" not in page:
            return found[::-1]
        after = f"&after={page['next']}"


async def _runs_when(
    cellgate: Installation,
    query: str,
    is_so: Callable[[list[dict[str, Any]]], bool],
    *,
    seconds: float = 40,
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    async def look() -> bool:
        nonlocal found
        try:
            found = await _runs(cellgate, query)
        except aiohttp.ClientError:
            return False
        return is_so(found)

    await poll_until(look, deadline_seconds=seconds, explain=lambda: f"the history has {found}")
    return found


async def _job_runs(plane: ControlPlane, pods: str, name: str, *, but: set[str]) -> set[str]:
    """The UIDs of the pods of a Job, once two of them run that did not before."""

    async def found() -> set[str]:
        listed = await plane.api.list(pods, labelSelector=f"job-name={name}")
        live = [pod for pod in listed if pod["status"].get("phase") == "Running"]
        uids = {pod["metadata"]["uid"] for pod in live} - but
        return uids if len(uids) == 2 else set()

    return await poll_until(found, deadline_seconds=60, explain=lambda: f"{name} does not run")


async def _finish(plane: ControlPlane, pods: str, name: str) -> None:
    """Let the pods of a Job that run succeed, as their kubelet would say."""
    for pod in await plane.api.list(pods, labelSelector=f"job-name={name}"):
        if pod["status"].get("phase") == "Running":
            path = f"{pods}/{pod['metadata']['name']}/status"
            await plane.api.patch(path, {"status": {"phase": "Succeeded"}})


async def test_a_life_with_a_preemption_a_retry_and_a_take_over_is_in_the_history_once(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    namespace = pods.split("/")[4]
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    job = await plane.api_as("bob").create(jobs, _job("low"))
    first = await _job_runs(plane, pods, "low", but=set())
    await create(plane, pods, gang_pods("high", size=2, gpus=8), user="alice")
    await running(plane, pods, "high", size=2)
    # What a killed leader has not written yet, the next one presumes: another test kills so.
    query = f"gang={namespace}/low"
    await _runs_when(cellgate, query, lambda runs: any("ended" in run for run in runs))
    await depose(cellgate, "kill")
    await end(plane, pods, "high", size=2)
    second = await _job_runs(plane, pods, "low", but=first)
    await _finish(plane, pods, "low")
    preempted, succeeded = await _runs_when(
        cellgate,
        query,
        lambda runs: len(runs) == 2 and all("ended" in run for run in runs),
    )
    assert [run["attempt"] for run in (preempted, succeeded)] == [1, 2]
    assert (preempted["outcome"], preempted["preemptedFor"]) == ("preempted", f"{namespace}/high")
    assert (succeeded["outcome"], "preemptedFor" in succeeded) == ("succeeded", False)
    for run, uids in ((preempted, first), (succeeded, second)):
        assert {member["uid"] for member in run["members"]} == uids
        assert (run["user"], run["vc"], run["workload"]) == ("bob", "default", "Job/low")
        assert (run["workloadUid"], run["image"]) == (job["metadata"]["uid"], "any")
        assert (run["requestedClass"], run["grantedClass"]) == ("oppo", "oppo")
        assert (run["leafCells"], run["memberCount"], run["labels"]["team"]) == (16, 2, "vision")
        assert (run["expectedSeconds"], run["limitSeconds"]) == (3600, 7200)
        times = [run[step] for step in ("submitted", "admitted", "released", "bound", "ended")]
        assert times == sorted(times)
        assert len(run["nodes"]) == 2
        assert "presumed" not in run
    assert succeeded["submitted"] >= preempted["submitted"]
    [other] = await _runs_when(
        cellgate, f"gang={namespace}/high", lambda runs: len(runs) == 1 and "ended" in runs[0]
    )
    assert (other["user"], other["outcome"]) == ("alice", "deleted")
    usage = (await cellgate.inspect("/v1/usage?by=user"))["items"]
    assert {"alice", "bob"} <= {one["user"] for one in usage}


def _seeded(number: int) -> list[GangFacts]:
    """Runs of the past: each waited for ten minutes, as was predicted, and ran for ten."""
    now = datetime.now(UTC)
    began = [now - timedelta(days=1, minutes=31 * index) for index in range(number)]
    told = {"key": "below 30 min", "size": 8, "median": 600.0, "low": 60.0, "high": 6000.0}
    told |= {"spread": 0.5, "coverage": 0.8}
    return [
        GangFacts(
            run=f"seed-{index}",
            gang=f"past/seed-{index}",
            user_name="alice",
            vc="default",
            leaf_count=16,
            asked_at=start - timedelta(seconds=600),
            started_at=start,
            ended_at=start + timedelta(seconds=600),
            outcome="succeeded",
            certainty=Certainty.KNOWN,
            stamp="1",
            predictions={
                "start": {"stamp": "1", "told": True, "at": start.timestamp() - 600, **told}
            },
        )
        for index, start in enumerate(began)
    ]


async def test_an_expected_start_appears_and_predictions_tell_their_error(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    async with open_database(cellgate.database_url, application_name="seed") as database:
        seeded = [a_decision(facts=facts) for facts in _seeded(40)]
        await PostgresDecisions(database.pool).insert(seeded)
    await depose(cellgate, "kill")  # the next leader learns from the history
    namespace = pods.split("/")[4]
    await create(plane, pods, gang_pods("holds", size=3, gpus=8), user="alice")
    await running(plane, pods, "holds", size=3)
    await create(plane, pods, gang_pods("waits", size=2, gpus=8), user="alice")
    shown: dict[str, Any] = {}

    async def expected() -> bool:
        nonlocal shown
        told = await cellgate.inspect(f"/v1/explain/{namespace}/waits")
        shown = told.get("waiting", {}).get("expectedStart", {})
        return "median" in shown

    await poll_until(expected, deadline_seconds=40, explain=lambda: f"told {shown}")
    assert shown["after"] == [f"{namespace}/holds"]
    assert shown["earliest"] <= shown["median"] <= shown["latest"]
    await end(plane, pods, "holds", size=3)
    await running(plane, pods, "waits", size=2)
    await end(plane, pods, "waits", size=2)
    query = f"gang={namespace}/waits"
    [run] = await _runs_when(cellgate, query, lambda runs: bool(runs) and "ended" in runs[0])
    assert {"runTime", "start"} <= set(run["predictions"])
    items = (await cellgate.inspect("/v1/predictions"))["items"]
    assert {"runTime", "start"} == {item["of"] for item in items}


class _Gangs:
    """Gangs of users who try again while anything is away; each runs, and ends in some way."""

    def __init__(self, plane: ControlPlane, path: str) -> None:
        self._plane = plane
        self._path = path
        self.sizes: dict[str, int] = {}

    async def live(self, *, is_enough: Callable[[], bool]) -> None:
        """Until all have lived, and some more until it is enough."""
        numbers = takewhile(lambda number: number < _GANGS or not is_enough(), count())
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._live_some(numbers))

    async def _live_some(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            name, size = f"gang{number}", 1 + number % 3
            self.sizes[name] = size
            is_deleted = number % _DELETED_EVERY == 0
            for index in range(size):
                pod = a_gang_pod(name, index, size=size, gpus=1)
                if not is_deleted:
                    pod = pod.annotated("test.cellgate.io/run-for", "300ms")
                await do_once(partial(self._plane.api_as("bob").create, self._path, pod))
            await self._until(name, "Running" if is_deleted else "Succeeded")
            if number % 2 or is_deleted:  # others stay, as a Job keeps its pods
                for index in range(size):
                    await do_once(partial(self._plane.api.delete, f"{self._path}/{name}-{index}"))

    async def _until(self, name: str, phase: str) -> None:
        for index in range(self.sizes[name]):

            async def is_so(path: str = f"{self._path}/{name}-{index}") -> bool:
                return bool((await self._plane.api.get(path))["status"].get("phase") == phase)

            await wait_patiently(is_so, f"{name} is not {phase}")


async def _rage(cellgate: Installation, faults: Counter[str]) -> None:
    """Kill leaders and webhooks, and hang and crash Postgres, until cancelled."""
    dice = random.Random(18)

    async def kill_leader() -> None:
        cellgate.extenders[await leader_of(cellgate)].kill()

    async def kill_webhook() -> None:
        cellgate.webhook.kill()

    while True:
        for fault in dice.sample([kill_leader, kill_webhook, hang_database, kill_connections], 4):
            await fault()
            faults[fault.__name__] += 1
            await asyncio.sleep(dice.uniform(1.0, 4.0))
            for process in (*cellgate.extenders.values(), *cellgate.webhooks.values()):
                if not process.is_running():
                    process.start()


async def test_every_gang_is_in_the_history_once_whatever_is_killed(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    gangs, faults = _Gangs(plane, pods), Counter[str]()
    raging = asyncio.create_task(_rage(cellgate, faults))
    try:
        await gangs.live(is_enough=lambda: len(faults) == 4)
    finally:
        raging.cancel()
        await asyncio.wait([raging])
        for process in (*cellgate.extenders.values(), *cellgate.webhooks.values()):
            if not process.is_running():
                process.start()
    assert raging.cancelled(), raging.exception()
    namespace = pods.split("/")[4]

    def own(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [run for run in runs if run["gang"].startswith(f"{namespace}/")]

    found = await _runs_when(
        cellgate,
        "",
        lambda runs: (
            len(own(runs)) >= len(gangs.sizes) and all("ended" in run for run in own(runs))
        ),
        seconds=_PATIENCE_SECONDS,
    )
    found = own(found)
    names = Counter(run["gang"].removeprefix(f"{namespace}/") for run in found)
    assert names == Counter(list(gangs.sizes))
    assert {name: len(run["members"]) for run in found if (name := _name(run))} == gangs.sizes
    outcomes = Counter(run["outcome"] for run in found)
    presumed = sum("presumed" in run for run in found)
    print(f"{len(found)} runs, {dict(outcomes)}, {presumed} presumed; faults: {dict(faults)}")
    assert outcomes["succeeded"] + outcomes["deleted"] == len(gangs.sizes) >= _GANGS
    assert len(faults) == 4


def _name(run: dict[str, Any]) -> str:
    return str(run["gang"].partition("/")[2])
