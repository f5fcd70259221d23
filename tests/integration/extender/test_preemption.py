"""Victims: whole gangs, some ended by kube-scheduler, some by us."""

import asyncio
from pathlib import Path

from kube import marks
from kube.api.client import KubeClient
from tests.support.eventually import until
from tests.support.policy.cluster_texts import hived_text
from tests.support.policy.documents import TWO_CLASSES_TEXT
from tests.support.services.extender import Caller, create, events, extending
from tests.support.services.simulated_cluster import simulated

FOUR = [f"node-{index:02}" for index in range(4)]
POLICIES = {"cluster": hived_text(racks=2, nodes=2, lab=4), "classes": TWO_CLASSES_TEXT}


async def fill_with_borrowers(client: KubeClient, caller: Caller) -> dict[str, str]:
    """Two opportunistic gangs of two nodes each; node → pod."""
    there = {}
    for gang in ("first", "second"):
        for index in range(2):
            name = f"{gang}-{index}"
            pod = await create(client, name, gang=gang, gang_size="2", class_name="oppo")
            there[await caller.place(pod, FOUR)] = name
    return there


async def uid(client: KubeClient, name: str) -> str:
    pod = await client.request("GET", f"/api/v1/namespaces/lab/pods/{name}")
    return str(pod["metadata"]["uid"])


async def is_ending(client: KubeClient, name: str) -> bool:
    found = await client.request("GET", "/api/v1/namespaces/lab/pods")
    pods = {pod["metadata"]["name"]: pod for pod in found["items"]}
    return name not in pods or "deletionTimestamp" in pods[name]["metadata"]


async def test_a_whole_gang_is_named_on_one_node_and_ended_on_the_others(tmp_path: Path) -> None:
    async with (
        simulated(tmp_path, nodes=4, racks=2, policies=POLICIES) as client,
        extending(client) as caller,
    ):
        there = await fill_with_borrowers(client, caller)
        pod = await create(client, "urgent", class_name="prod")
        assert (await caller.filter(pod, []))["NodeNames"] == []
        answer = await caller.preempt(pod, {n: [await uid(client, there[n])] for n in FOUR})

        ((node, named),) = answer.items()
        assert [victim["UID"] for victim in named["Pods"]] == [await uid(client, there[node])]
        victim = there[node].rsplit("-", 1)[0]
        (sibling,) = [p for n, p in there.items() if p.startswith(victim) and n != node]
        await until(lambda: is_ending(client, sibling))
        spared = [p for p in there.values() if not p.startswith(victim)]
        assert not any([await is_ending(client, p) for p in spared])
        told = await until(lambda: events(client, about=sibling))
        message = (
            f"gang lab/{victim} is preempted by gang lab/urgent (priority 100 in VC lab): it "
            "is opportunistic, and a guaranteed gang preempts such gangs; pods that its controller "
            "creates again wait for free leaf cells"
        )
        assert ("Preempted", message) in told

        # Its cells are kept for it: an equal in the meantime gets none of them.
        gang = await caller.get("/v1/gangs/lab/urgent")
        assert (gang["state"], gang["victims"]) == ("preempting", [f"lab/{victim}"])
        await client.request(
            "DELETE",
            f"/api/v1/namespaces/lab/pods/{there[node]}",
            query={"gracePeriodSeconds": "0"},
        )
        await client.request(
            "DELETE", f"/api/v1/namespaces/lab/pods/{sibling}", query={"gracePeriodSeconds": "0"}
        )
        await until(lambda: _fits(caller, pod))


async def test_what_the_engine_forbids_is_vetoed(tmp_path: Path) -> None:
    async with (
        simulated(tmp_path, nodes=4, racks=2, policies=POLICIES) as client,
        extending(client) as caller,
    ):
        good = [await create(client, f"good-{i}", class_name="prod") for i in range(4)]
        there = {await caller.place(pod, FOUR): pod for pod in good}
        candidates = {node: [str(pod["metadata"]["uid"])] for node, pod in there.items()}

        equal = await create(client, "equal", class_name="prod")
        borrower = await create(client, "borrower", class_name="oppo")
        assert await caller.preempt(equal, candidates) == {}
        assert await caller.preempt(borrower, candidates) == {}
        assert not any([await is_ending(client, f"good-{i}") for i in range(4)])


async def test_kube_scheduler_that_sees_no_need_for_victims_is_helped(tmp_path: Path) -> None:
    """A HiveD pod asks for no device: to kube-scheduler every node has room for it."""
    async with (
        simulated(tmp_path, nodes=4, racks=2, policies=POLICIES) as client,
        extending(client, preempt_patience_seconds=0.1) as caller,
    ):
        there = await fill_with_borrowers(client, caller)
        pod = await create(client, "urgent", class_name="prod")
        answer = await caller.filter(pod, FOUR)
        (reason,) = answer["FailedAndUnresolvableNodes"].values()
        assert reason.startswith("gang lab/urgent (priority 100 in VC lab) preempts 1 gang")
        async with asyncio.timeout(20):
            while sum([await is_ending(client, name) for name in there.values()]) < 2:
                await asyncio.sleep(0.1)
        assert 'preemptions_total{by="cellgate",cause="borrowed"} 1.0' in await caller.text(
            "/metrics"
        )


async def _fits(caller: Caller, pod: dict[str, object]) -> bool:
    return bool((await caller.filter(pod, FOUR))["NodeNames"])


async def test_a_pod_that_fits_after_all_is_woken(tmp_path: Path) -> None:
    """kube-scheduler heard of an end before we did, was refused again, and asks no third time."""
    async with (
        simulated(tmp_path, nodes=4, racks=2, policies=POLICIES) as client,
        extending(client) as caller,
    ):
        for index in range(4):
            await caller.place(await create(client, f"good-{index}", class_name="prod"), FOUR)
        pod = await create(client, "late", class_name="prod")
        assert (await caller.filter(pod, FOUR))["NodeNames"] == []
        path = "/api/v1/namespaces/lab/pods"
        await client.request("DELETE", f"{path}/good-0", query={"gracePeriodSeconds": "0"})

        async def is_woken() -> bool:
            stored = await client.request("GET", f"{path}/late")
            return marks.WOKEN_ANNOTATION in (stored["metadata"].get("annotations") or {})

        await until(is_woken)
