"""Two extenders, of which one leads: killed, paused and stopped under load."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from certs.clients import SCHEDULER
from state.embedded import EmbeddedPostgres
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.forwarder import Backend, Forwarder
from tests.controlplane.nodes import NodeShape
from tests.controlplane.waiting import poll_until
from tests.e2e.conftest import run_control_plane
from tests.e2e.gangs import (
    a_gang,
    check_no_leaf_cell_twice,
    create,
    end,
    own_pods,
    running,
)
from tests.e2e.installation import Installation


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plane(request: pytest.FixtureRequest, binaries: Binaries) -> AsyncIterator[ControlPlane]:
    """A control plane with nodes of eight leaf cells."""
    async with run_control_plane(request, binaries, ControlPlaneOptions()) as plane:
        await plane.add_nodes(6, NodeShape(gpus=8))
        yield plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane) -> AsyncIterator[Installation]:
    """Cellgate with two extenders, and what stands for the Service of their leader."""
    async with (
        EmbeddedPostgres(plane.directory / "database") as database,
        aiohttp.ClientSession() as http,
    ):
        installation = Installation(
            plane, http, database_url=database.url, extenders=2, serves_tls=True
        )
        backends = [
            Backend(port, f"{installation.url_of(replica)}/leader")
            for replica, port in enumerate(installation.extender_ports)
        ]
        async with Forwarder(backends, poll_seconds=0.1) as service:
            installation.scheduler_asks = f"https://127.0.0.1:{service.port}"
            await installation.install()
            yield installation


@pytest_asyncio.fixture(loop_scope="session")
async def pods(plane: ControlPlane, cellgate: Installation) -> AsyncIterator[str]:
    """The pods of a namespace of the test's own; both extenders run again when it is over."""
    async with own_pods(plane) as path:
        yield path


@pytest.fixture
def _task_watch() -> None:
    """Not here: kube-scheduler's connections through the forwarder outlive a test."""


async def _leader(cellgate: Installation, *, other_than: int | None = None) -> int:
    """Which extender leads, once one does."""

    async def found() -> int | None:
        leader = await cellgate.leader()
        return None if leader is None or leader == other_than else leader + 1

    numbered = await poll_until(found, deadline_seconds=20, explain=lambda: "nobody leads")
    assert numbered is not None
    return numbered - 1


async def _ask(cellgate: Installation, replica: int) -> tuple[dict[str, str], str | None]:
    """Filter by one replica: its answer, and whether it closes the connection."""
    url = f"{cellgate.url_of(replica)}/v1/extender/filter"
    body = {"Pod": {"metadata": {"name": "x", "uid": "u"}, "spec": {}}, "NodeNames": ["node-0"]}
    connector = aiohttp.TCPConnector(ssl=cellgate.trust(client=SCHEDULER))
    async with (
        aiohttp.ClientSession(connector=connector) as http,
        http.post(url, json=body) as said,
    ):
        return await said.json(), said.headers.get("Connection")


async def test_a_standby_is_ready_and_answers_no_verb(cellgate: Installation, pods: str) -> None:
    leader = await _leader(cellgate)
    refused, connection = await _ask(cellgate, 1 - leader)
    assert refused["Error"] == "extender is not ready: this replica does not lead"
    assert connection == "close"
    answered, connection = await _ask(cellgate, leader)
    assert answered["Error"] == ""
    assert connection != "close"


async def test_a_killed_leader_is_followed_and_every_gang_starts_whole(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    leader = await _leader(cellgate)
    load = asyncio.create_task(_load(plane, pods))
    await asyncio.sleep(1)
    cellgate.extenders[leader].kill()
    heir = await _leader(cellgate, other_than=leader)
    await load
    assert heir == 1 - leader
    await cellgate.start_extender(leader)


async def _load(plane: ControlPlane, path: str) -> None:
    """Gangs that come and go; in the end all have run whole."""
    for number in range(6):
        name = f"gang{number}"
        await create(plane, path, a_gang(name, size=4, gpus=8))
        await running(plane, path, name, size=4)
        check_no_leaf_cell_twice((await plane.api.get(path))["items"])
        await end(plane, path, name, size=4)


async def test_a_leader_that_slept_hands_out_nothing_when_it_wakes(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    sleeper = await _leader(cellgate)
    process = cellgate.extenders[sleeper]
    await create(plane, pods, a_gang("early", size=2, gpus=8))
    await running(plane, pods, "early", size=2)
    process.pause()
    await _leader(cellgate, other_than=sleeper)
    await create(plane, pods, a_gang("late", size=3, gpus=8))
    process.resume()
    await process.wait(deadline_seconds=20)
    await running(plane, pods, "late", size=3)
    check_no_leaf_cell_twice((await plane.api.get(pods))["items"])
    await cellgate.start_extender(sleeper)


async def test_a_leader_that_is_stopped_is_followed_at_once(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    leader = await _leader(cellgate)
    await cellgate.extenders[leader].stop()
    assert await _leader(cellgate, other_than=leader) == 1 - leader
    await create(plane, pods, a_gang("bert", size=2, gpus=8))
    await running(plane, pods, "bert", size=2)
    await cellgate.start_extender(leader)
