"""A large gang behind a stream of small ones, on a real control plane."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from kube import marks
from tests.controlplane.api import JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import poll_until
from tests.support.installed.gangs import a_gang_pod, create, end, gang_pods, running, told
from tests.support.installed.installation import Installation
from tests.support.installed.leaders import depose, two_extenders
from tests.support.installed.policies import promise_nodes, put_policy
from tests.support.installed.replays import check_replays

NODES = 2
LEVELS = "levels: [{name: all, strategy: fifo}]\n"


@pytest.fixture(scope="module")
def node_count() -> int:
    return NODES


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane) -> AsyncIterator[Installation]:
    """Cellgate with two extenders, and a VC that is promised everything."""
    async with two_extenders(plane) as installation:
        await promise_nodes(plane, NODES)
        yield installation


@pytest.fixture
def _task_watch() -> None:
    """Not here: kube-scheduler's connections through the forwarder outlive a test."""


async def _reserve_after(plane: ControlPlane, rules: str) -> None:
    await put_policy(plane, "queues", f"{LEVELS}reservation: {rules}\n")


async def _submit(plane: ControlPlane, pods: str, name: str, *, limit: int | None = None) -> None:
    """A gang of one pod that needs a node, perhaps with a limit."""
    spec = {} if limit is None else {"activeDeadlineSeconds": limit}
    await create(plane, pods, [a_gang_pod(name, 0, size=1, gpus=8, **spec)])


async def _fill(plane: ControlPlane, pods: str) -> None:
    """Two gangs that run for up to an hour use all nodes, and a gang waits that needs both."""
    for name in ("old0", "old1"):
        await _submit(plane, pods, name, limit=3600)
        await running(plane, pods, name, size=1)
    await create(plane, pods, gang_pods("large", size=NODES, gpus=8))


async def _queued(cellgate: Installation, name: str) -> JsonObject:
    """The entry of a gang in `/v1/queue`; empty if it does not wait."""
    page = await cellgate.inspect("/v1/queue")
    return next((one for one in page["items"] if one["gang"].endswith(f"/{name}")), {})


async def _until_reserved(cellgate: Installation) -> JsonObject:
    async def reservation() -> JsonObject:
        found: JsonObject = (await _queued(cellgate, "large")).get("reservation", {})
        return found

    return await poll_until(reservation, deadline_seconds=20, explain=lambda: "nothing reserved")


async def _until_waiting(cellgate: Installation, name: str, code: str) -> None:
    found: dict[str, str] = {}

    async def is_told() -> bool:
        found.update({one["gang"].split("/")[1]: one["code"] for one in await cellgate.waiting()})
        return found.get(name) == code

    await poll_until(is_told, deadline_seconds=15, explain=lambda: f"waiting: {found}")


async def test_a_large_gang_starts_behind_a_stream_of_small_ones(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    await _reserve_after(plane, "{after: 1s}")
    await _fill(plane, pods)
    made = await _until_reserved(cellgate)
    assert len(made["nodes"]) == NODES
    assert made["promisedStart"] == made["firstPromisedStart"] == made["deadline"]
    assert "are reserved for gang" in await told(plane, pods, "large", reason="Reserved")

    await end(plane, pods, "old0", size=1)
    await _submit(plane, pods, "endless")
    await _until_waiting(cellgate, "endless", "reserved")
    await _submit(plane, pods, "short", limit=600)
    await running(plane, pods, "short", size=1)  # it ends before the cells are needed

    await depose(cellgate, "kill")
    assert (await _until_reserved(cellgate))["since"] == made["since"]

    await end(plane, pods, "short", size=1)
    await end(plane, pods, "old1", size=1)
    await running(plane, pods, "large", size=NODES)
    await _until_waiting(cellgate, "endless", "vc-full")


async def test_without_reservations_the_small_gang_goes_first(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    await _reserve_after(plane, "{perPool: 0}")
    await _fill(plane, pods)
    await _until_waiting(cellgate, "large", "vc-full")
    await end(plane, pods, "old0", size=1)
    await _submit(plane, pods, "endless")
    await running(plane, pods, "endless", size=1)


def _at(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


async def _put_windows(plane: ControlPlane, windows: str) -> None:
    await put_policy(plane, "queues", f"{LEVELS}reservation: {{perPool: 0}}\n{windows}\n")


async def _until_known(cellgate: Installation, kind: str, *, field: str) -> None:
    """Wait until the leader has the window of a document that was put, and what it concerns."""

    async def is_known() -> bool:
        return any(field in one for one in (await cellgate.inspect("/v1/calendar"))[kind])

    await poll_until(is_known, deadline_seconds=15, explain=lambda: f"no {kind} with {field}")


async def test_nodes_in_maintenance_take_no_gang_and_return_afterwards(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    await _put_windows(plane, "")
    await _submit(plane, pods, "old")
    await running(plane, pods, "old", size=1)
    times = f'from: "{_at(5)}", until: "{_at(18)}"'
    selects = "nodeLabels: {kubernetes.io/os: linux}, nodes: [gone]"
    await _put_windows(plane, f"maintenance: [{{name: firmware, {selects}, {times}}}]")
    await _until_known(cellgate, "maintenance", field="nodes")
    await _submit(plane, pods, "endless")
    await _until_waiting(cellgate, "endless", "maintenance")
    (window,) = (await cellgate.inspect("/v1/calendar"))["maintenance"]
    assert (len(window["nodes"]), window["unknownNodes"]) == (NODES, ["gone"])
    assert [one["gang"].split("/")[1] for one in window["gangs"]] == ["old"]

    async def is_in_force() -> bool:
        (window,) = (await cellgate.inspect("/v1/calendar"))["maintenance"]
        return bool(window["state"] == "in-force")

    await poll_until(is_in_force, deadline_seconds=15, explain=lambda: "not in force")
    await depose(cellgate, "kill")  # the next leader knows the window from the document
    assert "does not end it" in await told(plane, pods, "old", reason="MaintenanceBegan")
    await running(plane, pods, "old", size=1)
    await running(plane, pods, "endless", size=1)
    status = (await plane.api.get(f"{pods}/endless-0"))["status"]
    (scheduled,) = [one for one in status["conditions"] if one["type"] == "PodScheduled"]
    assert scheduled["lastTransitionTime"] >= window["until"]


async def test_cells_that_are_reserved_in_advance_are_used_by_the_gangs_that_are_named(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    entry = f'leafCells: 8, members: {NODES}, from: "{_at(1)}", until: "{_at(600)}"'
    who = "vc: default, who: {when: 'leafCells > 8'}"
    await _put_windows(plane, f"reservations: [{{name: nightly, {entry}, {who}}}]")
    await _until_known(cellgate, "reservations", field="reservation")
    await _submit(plane, pods, "endless")
    await _until_waiting(cellgate, "endless", "reserved-ahead")
    await create(plane, pods, gang_pods("large", size=NODES, gpus=8))
    await running(plane, pods, "large", size=NODES)
    (shown,) = (await cellgate.inspect("/v1/calendar"))["reservations"]
    assert len(shown["reservation"]["nodes"]) == NODES
    await _put_windows(plane, "")


async def _submit_half(plane: ControlPlane, pods: str, name: str, *, user: str) -> JsonObject:
    """An opportunistic gang on half of a node, once it runs; it loses little if it is moved."""
    pod = a_gang_pod(name, 0, size=1, gpus=4).of_class("oppo")
    pod = pod.annotated(marks.COST_ANNOTATION, "1s").annotated(marks.RUN_TIME_ANNOTATION, "1h")
    await create(plane, pods, [pod], user=user)
    (found,) = await running(plane, pods, name, size=1)
    return found


async def test_an_opportunistic_gang_moves_so_that_a_larger_one_starts(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    rules = "reservation: {after: 1s}\ndefragmentation: {mode: MODE, maximumCost: 1m}\n"
    await put_policy(plane, "queues", LEVELS + rules.replace("MODE", "propose"))
    for name in ("stay0", "go0", "stay1", "go1"):
        # Estimates of a user count until the first run of the same user has ended.
        await _submit_half(plane, pods, name, user="alice" if name.startswith("stay") else "bob")
    await create(plane, pods, [a_gang_pod("large", 0, size=1, gpus=8).of_class("oppo")])
    for name in ("go0", "go1"):
        await end(plane, pods, name, size=1)

    async def proposed() -> JsonObject:
        entry = await _queued(cellgate, "large")
        found: JsonObject = entry.get("reservation", {}).get("moves", {})
        return found

    moves = await poll_until(proposed, deadline_seconds=45, explain=lambda: "no moves proposed")
    (victim,) = moves["gangs"]
    assert (moves["costSeconds"], moves["performed"]) == (4, False)
    await put_policy(plane, "queues", LEVELS + rules.replace("MODE", "perform"))
    (large,) = await running(plane, pods, "large", size=1)
    assert moves["nodes"] == [large["spec"]["nodeName"]]
    name = victim.split("/")[1]
    why = await told(plane, pods, name, reason="Preempted")
    assert f"gang {victim} is moved for gang" in why
    again = await _submit_half(plane, pods, f"again-{name}", user="alice")
    assert again["spec"]["nodeName"] != large["spec"]["nodeName"]


async def test_all_that_was_decided_above_is_decided_alike_from_the_log(
    cellgate: Installation,
) -> None:
    decided = await check_replays(cellgate.database_url)
    assert {"placement", "ordering", "reservation", "release"} <= decided.keys()
