"""A stream of gated gangs while what the planner leans on is killed, paused and restarted."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import orjson
import pytest
import pytest_asyncio

from kube import marks
from tests.controlplane.api import JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import NodeShape
from tests.controlplane.processes import ChildProcess
from tests.controlplane.waiting import poll_until
from tests.support.installed.database_faults import hang_database, kill_connections
from tests.support.installed.gang_stream import GangStream
from tests.support.installed.gangs import check_no_leaf_cell_twice, create, gang_pods
from tests.support.installed.installation import Installation
from tests.support.installed.leaders import leader_of, two_extenders
from tests.support.installed.patience import do_once, wait_patiently
from tests.support.installed.replays import check_replays

_PAUSE_SECONDS = 5.0
_PATIENCE_SECONDS = 90.0


@pytest.fixture(scope="module")
def node_count() -> int:
    return 6


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane) -> AsyncIterator[Installation]:
    """Cellgate with two extenders, started again when they end, as a kubelet does it."""
    async with two_extenders(plane) as installation:
        kubelet = asyncio.create_task(_restart_what_ends(installation))
        yield installation
        kubelet.cancel()
        await asyncio.wait([kubelet])


async def _restart_what_ends(cellgate: Installation) -> None:
    while True:
        await asyncio.sleep(0.5)
        for process in (
            *cellgate.extenders.values(),
            *cellgate.webhooks.values(),
            cellgate.scheduler,
        ):
            if not process.is_running():
                process.start()


@pytest.fixture
def _task_watch() -> None:
    """Not here: kube-scheduler's connections through the forwarder outlive a test."""


class PatientStream(GangStream):
    """Gangs of people who try again while the API server is away."""

    async def _begin(self, name: str) -> None:
        for member in gang_pods(name, size=self.size, gpus=8):
            await do_once(partial(self._plane.api_as("bob").create, self._path, member))

    async def _until_it_runs(self, name: str) -> None:
        async def all_run() -> bool:
            pods = await self._look()
            run = [pod for pod in pods if pod["status"].get("phase") == "Running"]
            return sum(_is_of(pod, name) for pod in run) == self.size

        await wait_patiently(all_run, f"{name} does not run")

    async def _look(self) -> list[JsonObject]:
        found: list[JsonObject] = (await self._plane.api.get(self._path))["items"]
        check_no_leaf_cell_twice(found)
        return found

    async def _finish(self, name: str) -> None:
        for index in range(self.size):
            await do_once(partial(self._plane.api.delete, f"{self._path}/{name}-{index}"))


def _is_of(pod: JsonObject, gang: str) -> bool:
    return bool(pod["metadata"]["labels"][marks.GANG_LABEL] == gang)


async def _kill(process: ChildProcess) -> None:
    process.kill()
    process.start()


async def _pause(process: ChildProcess) -> None:
    process.pause()
    await asyncio.sleep(_PAUSE_SECONDS)
    process.resume()


@asynccontextmanager
async def _flowing(plane: ControlPlane, cellgate: Installation, pods: str) -> AsyncIterator[None]:
    """Gangs flow while the body runs, some more follow, and all of them run whole."""
    stream = PatientStream(plane, pods)
    async with stream.flowing():
        yield
        before = stream.finished
        await poll_until(
            lambda: _has_more(stream, than=before),
            deadline_seconds=_PATIENCE_SECONDS,
            explain=lambda: "no gang ran afterwards",
        )
    await leader_of(cellgate)


async def _has_more(stream: GangStream, *, than: int) -> bool:
    return stream.finished > than + 5


@pytest.mark.parametrize("hurt", [_kill, _pause])
@pytest.mark.parametrize("what", ["kube-scheduler", "API server"])
async def test_gangs_start_whole_when_the_control_plane_is_hurt(
    what: str,
    hurt: Callable[[ChildProcess], Awaitable[None]],
    plane: ControlPlane,
    cellgate: Installation,
    pods: str,
) -> None:
    is_scheduler = what == "kube-scheduler"
    process = cellgate.scheduler if is_scheduler else plane.processes.named("kube-apiserver")
    async with _flowing(plane, cellgate, pods):
        await hurt(process)


@pytest.mark.parametrize("hurt", [hang_database, kill_connections])
async def test_gangs_start_whole_when_the_database_is_hurt(
    hurt: Callable[[], Awaitable[None]], plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    async with _flowing(plane, cellgate, pods):
        await hurt()


async def test_a_node_that_dies_between_plan_and_bind_is_left(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    cellgate.scheduler.pause()
    await create(plane, pods, gang_pods("bert", size=2, gpus=8))
    planned = [await plane.api.wait_until(f"{pods}/bert-{i}", _is_released) for i in range(2)]
    dead = orjson.loads(planned[0]["metadata"]["annotations"][marks.PLACEMENT_ANNOTATION])["node"]
    await plane.delete_nodes([dead])
    cellgate.scheduler.resume()
    for index in range(2):
        pod = await plane.api.wait_until(f"{pods}/bert-{index}", _runs)
        assert pod["spec"]["nodeName"] != dead
    await plane.add_nodes(1, NodeShape(gpus=8), first=int(dead.removeprefix("node-")))


def _is_released(pod: JsonObject) -> bool:
    return not pod["spec"].get("schedulingGates") and bool(pod["status"].get("nominatedNodeName"))


def _runs(pod: JsonObject) -> bool:
    return bool(pod["status"].get("phase") == "Running")


async def test_all_that_was_decided_above_is_decided_alike_from_the_log(
    cellgate: Installation,
) -> None:
    decided = await check_replays(cellgate.database_url)
    assert {"placement", "ordering", "release"} <= decided.keys()
