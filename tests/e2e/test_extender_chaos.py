"""A stream of gangs while everything around it is killed: nothing lost, nothing double.

`make extender-chaos` runs more gangs between two faults (EXTENDER_GANGS).
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import aiohttp
import orjson
import pytest
import pytest_asyncio

from extender.cluster.replay import replay_epoch
from kube import marks
from state.database.database import open_database
from state.log.postgres import PostgresDecisions
from tests.controlplane.api import ApiError, JsonObject
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.nodes import NodeShape
from tests.controlplane.waiting import poll_until
from tests.e2e.control_planes import run_control_plane
from tests.support.installed.extender_only import ExtenderOnly
from tests.support.kube.pods import PodBuilder, a_new_pod

PODS = "/api/v1/namespaces/default/pods"
NODES = 8
GANGS = int(os.environ.get("EXTENDER_GANGS", "10"))
CLUSTER: JsonObject = {
    "physicalCluster": {
        "cellTypes": {
            "rack": {"childCellType": "node", "childCellNumber": 4},
            "node": {"childCellType": "A100", "childCellNumber": 8, "isNodeLevel": True},
        },
        "physicalCells": [
            {
                "cellType": "rack",
                "cellChildren": [{"cellAddress": f"node-{rack * 4 + i}"} for i in range(4)],
            }
            for rack in range(2)
        ],
    },
    "virtualClusters": {
        "a": {"virtualCells": [{"cellType": "rack.node", "cellNumber": 4}]},
        "b": {"virtualCells": [{"cellType": "rack.node", "cellNumber": 3}]},
    },
}


@pytest_asyncio.fixture(loop_scope="session")
async def plane(request: pytest.FixtureRequest, binaries: Binaries) -> AsyncIterator[ControlPlane]:
    """A control plane with eight nodes of eight leaf cells."""
    options = ControlPlaneOptions(scheduler=False)
    async with run_control_plane(request, binaries, options) as plane:
        await plane.add_nodes(NODES, NodeShape(gpus=8))
        yield plane


@pytest_asyncio.fixture(loop_scope="session")
async def extender_only(plane: ControlPlane) -> AsyncIterator[ExtenderOnly]:
    """An extender with a database of its own, and a scheduler."""
    async with aiohttp.ClientSession() as http:
        extender_only = ExtenderOnly(
            plane, http, database_url=f"embedded:{plane.directory / 'database'}"
        )
        await extender_only.start(CLUSTER)
        yield extender_only


def a_short_member(gang: str, index: int, *, size: int, leaves: int, vc: str) -> PodBuilder:
    """A member of a gang that runs for less than a second."""
    pod = a_new_pod(f"{gang}-{index}").with_gpus(leaves).in_gang(gang, size=size).in_vc(vc)
    pod = pod.with_spec(schedulerName=marks.SCHEDULER_NAME).ending_at_once()
    return pod.annotated("test.cellgate.io/run-for", "700ms")


class Stream:
    """Submits gangs, kills processes, and watches what runs where."""

    def __init__(self, plane: ControlPlane, extender_only: ExtenderOnly, seed: int) -> None:
        self._plane = plane
        self._extender_only = extender_only
        self._random = Random(seed)
        self.submitted: list[str] = []

    async def submit(self, gangs: int) -> None:
        for _ in range(gangs):
            gang = f"gang-{len(self.submitted)}"
            size, leaves = self._random.choice([(1, 1), (1, 8), (2, 4), (3, 8), (2, 8), (4, 2)])
            vc = self._random.choice("ab")
            for index in range(size):
                pod = a_short_member(gang, index, size=size, leaves=leaves, vc=vc)
                await self._create(pod)
                self.submitted.append(pod["metadata"]["name"])

    async def _create(self, pod: JsonObject) -> None:
        """As a controller does it: again, until the API server says that it has it."""

        async def is_there() -> bool:
            try:
                await self._plane.api.create(PODS, pod)
            except ApiError as error:
                return error.status == 409
            except (aiohttp.ClientError, TimeoutError):
                return False
            return True

        await poll_until(is_there, deadline_seconds=60, explain=lambda: "API server away")

    async def hurt(self, what: str) -> None:
        """Kill something as an out-of-memory killer would, and start it again."""
        if what == "postgres":
            for pid in _descendants(self._extender_only.extender.pid, "postgres"):
                os.kill(pid, signal.SIGKILL)
            return
        process = (
            self._extender_only.extender
            if what == "extender"
            else self._plane.processes.named(what)
        )
        process.kill()
        process.start()
        if what == "extender":
            await self._extender_only.wait_ready()

    async def all_succeeded(self) -> bool:
        """Look at everything: no leaf cell is shared, and no gang runs in part for long."""
        try:
            pods = await self._plane.api.list(PODS)
        except (ApiError, aiohttp.ClientError, TimeoutError):
            return False
        _check_disjoint(pods)
        done = [pod for pod in pods if pod["status"]["phase"] == "Succeeded"]
        return {pod["metadata"]["name"] for pod in done} == set(self.submitted)


def _check_disjoint(pods: list[JsonObject]) -> None:
    held: dict[tuple[str, int], str] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if not node or pod["status"]["phase"] not in ("Pending", "Running"):
            continue
        name = pod["metadata"]["name"]
        text = pod["metadata"]["annotations"][marks.PLACEMENT_ANNOTATION]
        for leaf in orjson.loads(text)["leafCells"]:
            other = held.setdefault((node, leaf), name)
            assert other == name, f"leaf cell {leaf} of {node} given to {other} and {name}"


def _descendants(pid: int, word: str) -> list[int]:
    """Processes below one, whose command line has a word."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            if word in Path(f"/proc/{child}/cmdline").read_text(errors="replace"):
                found.append(child)
            found += _descendants(child, word)
    return found


async def test_nothing_is_lost_and_nothing_is_double(
    plane: ControlPlane, extender_only: ExtenderOnly
) -> None:
    stream = Stream(plane, extender_only, seed=1)
    for what in ("extender", "second-scheduler", "kube-apiserver", "postgres", "extender"):
        await stream.submit(GANGS)
        await asyncio.sleep(1)
        await stream.hurt(what)
        await stream.all_succeeded()
    await stream.submit(GANGS)
    await poll_until(
        stream.all_succeeded, deadline_seconds=180, explain=lambda: "some gangs never ran"
    )
    await poll_until(
        lambda: _is_empty(extender_only), deadline_seconds=20, explain=lambda: "cells stay in use"
    )

    await extender_only.extender.stop(grace_seconds=30)
    async with open_database(
        f"embedded:{plane.directory / 'database'}", application_name="replay"
    ) as database:
        rows = await database.pool.fetch(
            "SELECT DISTINCT epoch FROM decisions WHERE service = 'extender' AND epoch IS NOT NULL"
        )
        reader = PostgresDecisions(database.pool)
        reports = [await replay_epoch(reader, epoch=row["epoch"]) for row in rows]
    assert len(reports) == 3
    assert [report.differences for report in reports] == [[], [], []]
    assert [report.stopped for report in reports] == [None, None, None]
    assert sum(report.decisions for report in reports) > len(stream.submitted)


async def _is_empty(extender_only: ExtenderOnly) -> bool:
    return not (await extender_only.get("/v1/gangs"))["items"]
