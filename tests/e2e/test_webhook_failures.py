"""Three webhooks as our manifests have them: killed, restarted, rotated, and all gone.

Pods that are none of our business are created beside the others all the time, and never notice.
"""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import asyncpg
import pytest
import pytest_asyncio

from kube.api.webhook_configurations import GROUP, KINDS
from state.embedded import EmbeddedPostgres
from tests.chaos.webhook import REPLICAS, SECRET, a_webhook_service, soak
from tests.controlplane.api import ApiError, JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import poll_until
from tests.support.installed.installation import Installation
from tests.support.installed.pod_load import Load, a_load_pod
from tests.support.state.wire import Wire


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def database(plane: ControlPlane) -> AsyncIterator[EmbeddedPostgres]:
    async with EmbeddedPostgres(plane.directory / "database") as database:
        yield database


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def wire(database: EmbeddedPostgres) -> AsyncIterator[Wire]:
    async with Wire(database.url) as wire:
        yield wire


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane, wire: Wire) -> AsyncIterator[Installation]:
    async with (
        aiohttp.ClientSession() as http,
        a_webhook_service(plane, http, database_url=wire.url) as installation,
    ):
        yield installation


@pytest.fixture
def _task_watch() -> None:
    """Not here: connections through the forwarder and the wire outlive a test."""


async def _create(load: Load, name: str, *, is_managed: bool = True) -> None:
    await load.users["alice"].create(load.pods, a_load_pod(name, is_managed=is_managed))


async def test_manifests_applied_again_leave_the_trust_alone(
    plane: ControlPlane, cellgate: Installation, load: Load
) -> None:
    """By either kind of apply, and from one to the other: no user has to put it back."""

    async def generations() -> list[int]:
        paths = [f"{GROUP}/{kind}/cellgate" for kind in KINDS]
        return [(await plane.api.get(path))["metadata"]["generation"] for path in paths]

    before = await generations()
    server_side = ("--server-side", "--force-conflicts")
    for number, flags in enumerate(((), server_side, server_side, ())):
        await cellgate.apply(*flags)
        assert await generations() == before
        await _create(load, f"after-apply-{number}")


async def test_trust_that_somebody_removed_comes_back(
    plane: ControlPlane, cellgate: Installation, load: Load
) -> None:
    for kind in KINDS:
        path = f"{GROUP}/{kind}/cellgate"
        stored = await plane.api.get(path)
        for hook in stored["webhooks"]:
            del hook["clientConfig"]["caBundle"]
        await plane.api.replace(path, stored)
    await cellgate.until_trusted()
    await load.create(is_managed=True)
    assert load.counted["created"] == 1


async def test_restarts_of_every_replica_fail_no_call(cellgate: Installation, load: Load) -> None:
    creating = asyncio.create_task(load.run(400, rate=50))
    for replica in range(REPLICAS):
        await cellgate.webhooks[replica].stop(grace_seconds=30)
        await cellgate.start_webhook(replica)
        await asyncio.sleep(0.3)  # until what stands for the Service has noticed
    await creating
    assert load.failures == []
    assert load.counted["created"] == 400


async def test_a_new_ca_fails_no_call(
    plane: ControlPlane, cellgate: Installation, load: Load
) -> None:
    async def authorities() -> set[str]:
        return {(await plane.api.get(SECRET))["data"]["signing.crt"]}

    before = await authorities()
    creating = asyncio.create_task(load.run(200, rate=20))
    body = {"metadata": {"annotations": {"cellgate.io/renew": "ca"}}}
    await plane.api.patch(SECRET, body)

    async def is_new() -> bool:
        return await authorities() != before

    await poll_until(is_new, deadline_seconds=30, explain=lambda: "the old CA still signs")
    await creating
    assert load.failures == []


async def _forge(cellgate: Installation, pod: JsonObject, *, user: str, namespace: str) -> None:
    pod["metadata"]["namespace"] = namespace
    request = {
        "uid": f"forged-{pod['metadata']['name']}",
        "operation": "CREATE",
        "namespace": namespace,
        "userInfo": {"username": user},
        "object": pod,
    }
    url = f"{cellgate.webhook_port_url(0)}/mutate/pods"
    async with (
        aiohttp.ClientSession() as http,
        http.post(url, json={"request": request}, ssl=False) as answer,
    ):
        assert (await answer.json())["response"]["allowed"]


def _a_member(name: str, *, gpus: int) -> JsonObject:
    return a_load_pod(name, is_managed=True).in_gang("real", size=2).with_gpus(gpus)


async def test_a_forged_review_holds_quota_for_seconds_only(
    cellgate: Installation, load: Load, database: EmbeddedPostgres
) -> None:
    """A caller that reaches our port from inside the cluster cannot keep users from their cells.

    Neither by a pod that never comes, nor by a member that makes a real gang larger.
    """
    namespace = load.pods.split("/")[-2]
    await load.users["alice"].create(load.pods, _a_member("real-0", gpus=1))
    connection = await asyncpg.connect(database.url)

    async def held() -> list[tuple[str, int, bool]]:
        rows = await connection.fetch(
            "SELECT gang, leaf_count, expires_at IS NULL FROM charges WHERE namespace = $1",
            namespace,
        )
        return sorted(tuple(row) for row in rows)

    async def is_settled() -> bool:
        return await held() == [("real", 2, True)]

    try:
        await poll_until(is_settled, deadline_seconds=30, explain=lambda: "not confirmed")
        never = a_load_pod("never-created", is_managed=True)
        await _forge(cellgate, never, user="victim", namespace=namespace)
        member = _a_member("real-1", gpus=500)
        await _forge(cellgate, member, user="alice", namespace=namespace)
        assert await held() == [("never-created", 1, False), ("real", 501, True)]
        await poll_until(is_settled, deadline_seconds=30, explain=lambda: "still charged")
    finally:
        await connection.close()


async def test_one_replica_killed_is_replaced_by_the_others(
    cellgate: Installation, load: Load
) -> None:
    """Requests that are under way at that moment are lost, and their callers repeat them."""
    creating = asyncio.create_task(load.run(100, rate=25))
    await asyncio.sleep(1)
    cellgate.webhooks[0].kill()
    await creating
    await cellgate.webhooks[0].wait(deadline_seconds=10)
    await cellgate.start_webhook(0)
    assert load.counted["failed creations"] == 0
    assert load.counted["failed calls (other)"] == 0
    assert load.counted["failed calls (managed)"] <= 3
    assert "" not in load.decided.values()


async def test_without_any_webhook_the_overlay_decides(
    plane: ControlPlane, cellgate: Installation, load: Load
) -> None:
    for replica in range(REPLICAS):
        cellgate.webhooks[replica].kill()
    await _create(load, "other-closed", is_managed=False)
    with pytest.raises(ApiError, match="failed calling webhook"):
        await _create(load, "managed-closed")
    cellgate.manifests = "overlays/fail-open"
    await cellgate.apply()
    await _create(load, "other-open", is_managed=False)

    async def passes() -> bool:
        try:
            await _create(load, "managed-open")
        except ApiError:
            return False
        return True

    await poll_until(passes, deadline_seconds=10, explain=lambda: "not fail-open yet")
    cellgate.manifests = "base"
    await cellgate.apply()
    for replica in range(REPLICAS):
        await cellgate.webhooks[replica].wait(deadline_seconds=10)
    await asyncio.gather(*map(cellgate.start_webhook, range(REPLICAS)))
    await cellgate.until_trusted()
    await load.create(is_managed=True)
    assert load.counted["created"] == 1


async def test_chaos_for_a_short_while(
    plane: ControlPlane, cellgate: Installation, database: EmbeddedPostgres, wire: Wire
) -> None:
    """The long form: `python -m tests.chaos.webhook`."""
    counted = await soak(
        plane, cellgate, database=database, wire=wire, creations=150, rate=10, seed=7
    )
    assert counted["created"] + counted.get("refused by a rule", 0) == 150
