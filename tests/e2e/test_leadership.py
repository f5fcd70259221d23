"""Two extenders, of which one leads: killed, paused and stopped under load."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from certs.clients import SCHEDULER
from kube.marks import LEADER_LABEL
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import poll_until
from tests.support.installed.gang_stream import GangStream
from tests.support.installed.gangs import check_no_leaf_cell_twice, create, gang_pods, running
from tests.support.installed.installation import NAMESPACE, OWN_PODS, Installation
from tests.support.installed.leaders import WAYS, depose, leader_of, two_extenders

_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/cellgate-extender"


@pytest.fixture(scope="module")
def node_count() -> int:
    return 6


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane) -> AsyncIterator[Installation]:
    """Cellgate with two extenders, and what stands for the Service of their leader."""
    async with two_extenders(plane) as installation:
        yield installation


@pytest.fixture
def _task_watch() -> None:
    """Not here: kube-scheduler's connections through the forwarder outlive a test."""


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
    leader = await leader_of(cellgate)
    refused, connection = await _ask(cellgate, 1 - leader)
    assert refused["Error"] == "extender is not ready: this replica is not the leader"
    assert connection == "close"
    answered, connection = await _ask(cellgate, leader)
    assert answered["Error"] == ""
    assert connection != "close"


async def test_a_standby_shows_nothing_and_says_which_replica_can(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    """What it could show would be wrong: it has made no decision."""
    await create(plane, pods, gang_pods("whole", size=2, gpus=8))
    await create(plane, pods, gang_pods("part", size=3, gpus=8)[:2])
    await running(plane, pods, "whole", size=2)
    leader = await leader_of(cellgate)
    holder = (await plane.api.get(_LEASE))["spec"]["holderIdentity"]
    namespace = pods.split("/")[4]
    for path in (
        f"/v1/explain/{namespace}/part-0",
        f"/v1/gangs/{namespace}/whole",
        "/v1/waiting",
        "/v1/inspect/affinitygroups",
    ):
        status, answer, named = await _inspect(cellgate, 1 - leader, path)
        assert (status, named) == (503, holder), path
        assert answer["error"] == (
            f"this replica does not lead: {holder} does, and only the leader can answer; "
            "ask the Service cellgate-extender, which selects it"
        )
        assert (await _inspect(cellgate, leader, path))[0] == 200, path


async def _inspect(
    cellgate: Installation, replica: int, path: str
) -> tuple[int, dict[str, str], str | None]:
    """Ask one replica as the admin: status, answer, and the leader that it names."""
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=cellgate.trust())) as http,
        http.get(cellgate.url_of(replica) + path, headers=cellgate.admin) as said,
    ):
        return said.status, await said.json(), said.headers.get("X-Cellgate-Leader")


async def _labelled(plane: ControlPlane) -> list[str]:
    found = await plane.api.list(OWN_PODS, labelSelector=f"{LEADER_LABEL}=true")
    return [pod["metadata"]["name"] for pod in found]


async def test_the_label_by_which_the_service_finds_the_leader_follows_it(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    before = await leader_of(cellgate)
    await depose(cellgate, "kill")
    leader = await leader_of(cellgate)
    assert leader != before

    async def has_moved() -> bool:
        return await _labelled(plane) == [f"cellgate-extender-{leader}"]

    await poll_until(has_moved, deadline_seconds=5, explain=lambda: "the label did not follow")


async def test_whichever_way_a_leader_goes_every_gang_starts_whole(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    stream = GangStream(plane, pods)
    async with stream.flowing():
        for way in WAYS:
            await depose(cellgate, way)
    assert stream.finished > len(WAYS)


async def test_a_rolling_update_in_the_middle_of_a_stream_loses_no_gang(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    stream = GangStream(plane, pods)
    async with stream.flowing():
        standby = 1 - await leader_of(cellgate)
        for replica in (standby, 1 - standby):  # each is ready before the next one goes
            await cellgate.extenders[replica].stop()
            await cellgate.start_extender(replica)
        assert await leader_of(cellgate) == standby
    assert stream.finished > 2


async def test_a_leader_that_slept_hands_out_nothing_when_it_wakes(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    sleeper = await leader_of(cellgate)
    process = cellgate.extenders[sleeper]
    await create(plane, pods, gang_pods("early", size=2, gpus=8))
    await running(plane, pods, "early", size=2)
    process.pause()
    await leader_of(cellgate, other_than=sleeper)
    await create(plane, pods, gang_pods("late", size=3, gpus=8))
    process.resume()
    await process.wait(deadline_seconds=20)
    await running(plane, pods, "late", size=3)
    check_no_leaf_cell_twice((await plane.api.get(pods))["items"])
    await cellgate.start_extender(sleeper)


async def test_a_leader_that_is_stopped_is_followed_at_once(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    leader = await leader_of(cellgate)
    await cellgate.extenders[leader].stop()
    assert await leader_of(cellgate, other_than=leader) == 1 - leader
    await create(plane, pods, gang_pods("bert", size=2, gpus=8))
    await running(plane, pods, "bert", size=2)
    await cellgate.start_extender(leader)
