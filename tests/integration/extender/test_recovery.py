"""A second extender beside the same cluster: what the first one did is known before it answers."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from extender.cluster.replay import replay_epoch
from kube import marks
from kube.api.client import MERGE_PATCH, KubeClient
from tests.support.kube.pods import PodBuilder, a_new_pod
from tests.support.policy.cluster_texts import hived_text
from tests.support.services.extender import NODES, PODS, create, events, extending
from tests.support.services.simulated_cluster import simulated
from tests.support.twins.log import MemoryDecisions

FOUR = [f"node-{index:02}" for index in range(4)]


async def put_on(client: KubeClient, name: str, node: str) -> None:
    """Bind a pod behind our back."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"metadata": {"name": name}, "target": target}
    await client.request("POST", f"{PODS}/{name}/binding", body=body)


async def test_what_runs_keeps_its_leaf_cells_over_a_restart(client: KubeClient) -> None:
    pod = await create(client, "bert", leaves=4)
    async with extending(client) as caller:
        await caller.place(pod)
        before = (await caller.get("/v1/nodes"))["items"]
    async with extending(client) as caller:
        assert (await caller.get("/v1/nodes"))["items"] == before
        other = await create(client, "other", leaves=4)
        placed = orjson.loads((await _annotations(client, "bert"))[marks.PLACEMENT_ANNOTATION])
        await caller.place(other, [placed["node"]])
        mine = orjson.loads((await _annotations(client, "other"))[marks.PLACEMENT_ANNOTATION])
        assert not set(mine["leafCells"]) & set(placed["leafCells"])


async def test_a_gang_that_was_half_bound_is_completed_first(tmp_path: Path) -> None:
    text = hived_text(racks=2, nodes=2, lab=4)
    async with simulated(tmp_path, nodes=4, racks=2, policies={"cluster": text}) as client:
        gang = [await create(client, f"g-{i}", gang="g", gang_size="4") for i in range(4)]
        async with extending(client) as caller:
            await caller.place(gang[0], FOUR)
            await caller.place(gang[1], FOUR)
        rival = await create(client, "rival")
        async with extending(client) as caller:
            answer = await caller.filter(rival, FOUR)
            assert answer["NodeNames"] == []
            nodes = [await caller.place(pod, FOUR) for pod in gang[2:]]
            assert len({*nodes}) == 2


async def test_cells_of_members_that_are_created_later_are_leased_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extender.queue.seen_gangs._RENEW_SECONDS", 0.2)
    store, text = MemoryDecisions(), hived_text(racks=2, nodes=2, lab=4)
    async with simulated(tmp_path, nodes=4, racks=2, policies={"cluster": text}) as client:
        await client.request("POST", PODS, body=_late_gang("g-0"))
        async with extending(client) as caller:
            await caller.place(await _released(client, "g-0"), FOUR)
        await asyncio.sleep(1.1)  # the next life is another second, and so another epoch
        async with extending(client, store=store, lease_seconds=1) as caller:
            rivals = [await create(client, f"rival-{index}", vc="lab") for index in range(2)]
            assert await caller.place(rivals[0], FOUR)
            await asyncio.sleep(2)  # the planner renews the leases
            assert (await caller.filter(rivals[1], FOUR))["NodeNames"] == []
            for index in (1, 2):
                await client.request("POST", PODS, body=_late_gang(f"g-{index}"))
                await caller.place(await _released(client, f"g-{index}"), FOUR)
    (epoch,) = {record.epoch for record in store.records if record.epoch}
    report = await replay_epoch(store, epoch=epoch)
    assert (report.is_identical, report.differences) == (True, [])


def _late_gang(name: str) -> PodBuilder:
    """A member of a gang of three, of which two are created later."""
    pod = a_new_pod(name).with_gpus(8).in_vc("lab").in_gang("g", size=3).gated()
    return pod.annotated(marks.LATE_ANNOTATION, "2")


async def _released(client: KubeClient, name: str) -> dict[str, Any]:
    """A pod, once its gate is lifted."""
    async with asyncio.timeout(10):
        while (pod := await client.request("GET", f"{PODS}/{name}"))["spec"].get("schedulingGates"):
            await asyncio.sleep(0.02)
    return pod


async def test_devices_of_pods_that_we_did_not_place_are_never_handed_out(
    client: KubeClient,
) -> None:
    await create(client, "foreign", leaves=6)
    await put_on(client, "foreign", NODES[0])
    for name, text in (("garbled", "{"), ("lying", '{"node":"node-01","leafCells":[9,9,9]}')):
        await create(client, name, leaves=3, annotations={marks.PLACEMENT_ANNOTATION: text})
        await put_on(client, name, NODES[1])
    async with extending(client) as caller:
        pod = await create(client, "bert", leaves=3)
        assert (await caller.filter(pod))["NodeNames"] == []
        small = await create(client, "small", leaves=2)
        assert await caller.place(small) in NODES
        async with asyncio.timeout(20):
            while 'leaf_cells{state="foreign",vc=""} 12.0' not in await caller.text("/metrics"):
                await asyncio.sleep(0.1)


async def test_two_pods_that_claim_the_same_leaf_cells_are_both_counted(client: KubeClient) -> None:
    claim = {marks.PLACEMENT_ANNOTATION: '{"node":"node-00","leafCells":[0,1]}'}
    for name in ("one", "two"):
        await create(client, name, leaves=2, annotations=claim)
        await put_on(client, name, NODES[0])
    async with extending(client) as caller:
        (node, _) = (await caller.get("/v1/nodes"))["items"]
        assert node["leafCells"] == {"total": 8, "used": 4, "free": 4, "bad": 0}
        async with asyncio.timeout(20):
            metric = 'cellgate_extender_drift_total{kind="contradiction"} 1.0'
            while metric not in await caller.text("/metrics"):
                await asyncio.sleep(0.1)


async def test_a_released_pod_keeps_its_place_until_it_is_bound(client: KubeClient) -> None:
    claim = {marks.PLACEMENT_ANNOTATION: '{"node":"node-01","leafCells":[0,1,2,3,4,5,6,7]}'}
    pod = await create(client, "released", annotations=claim)
    async with extending(client) as caller:
        rival = await create(client, "rival")
        assert await caller.place(rival) == NODES[0]
        assert await caller.place(pod) == NODES[1]


async def test_a_question_about_a_pod_that_is_gone_takes_nothing(client: KubeClient) -> None:
    pod = await create(client, "gone")
    async with extending(client) as caller:
        await client.request("DELETE", f"{PODS}/gone", query={"gracePeriodSeconds": "0"})
        async with asyncio.timeout(10):
            while "has ended" not in (await caller.filter(pod)).get("Error", ""):
                await asyncio.sleep(0.02)
        assert (await caller.get("/v1/gangs"))["items"] == []


async def test_a_pod_is_told_why_it_waits_once_per_reason(client: KubeClient) -> None:
    async with extending(client) as caller:
        for name in ("one", "two"):
            await caller.place(await create(client, name))
        pod = await create(client, "waits")
        for version in range(3):
            body = {"metadata": {"labels": {"x": str(version)}}}
            await client.request("PATCH", f"{PODS}/waits", body=body, content_type=MERGE_PATCH)
            await caller.filter(pod, NODES[: 1 + version % 2])
        async with asyncio.timeout(10):
            while not (told := await events(client, about="waits")):
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)
        assert told == await events(client, about="waits")
        assert [reason for reason, _ in told] == ["Waiting"]


async def test_two_lives_are_decided_again_from_the_log_alone(tmp_path: Path) -> None:
    store = MemoryDecisions()
    text = hived_text(racks=2, nodes=2, lab=3)
    async with simulated(tmp_path, nodes=4, racks=2, policies={"cluster": text}) as client:
        for life in range(2):
            async with extending(client, store=store) as caller:
                for number in range(6):
                    pod = await create(client, f"p-{life}-{number}", leaves=5)
                    answer = await caller.filter(pod, FOUR)
                    if answer["NodeNames"] and number % 2:
                        await caller.bind(pod, answer["NodeNames"][0])
            await asyncio.sleep(1.1)  # the next life is another second, and so another epoch
    epochs = sorted({record.epoch for record in store.records if record.epoch})
    assert len(epochs) == 2
    reports = [await replay_epoch(store, epoch=epoch) for epoch in epochs]
    assert [report.differences for report in reports] == [[], []]
    assert all(report.is_identical and report.decisions >= 6 for report in reports)


async def _annotations(client: KubeClient, name: str) -> dict[str, str]:
    pod = await client.request("GET", f"{PODS}/{name}")
    found: dict[str, str] = pod["metadata"]["annotations"]
    return found
