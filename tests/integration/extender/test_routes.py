"""The extender over HTTP, beside a simulated cluster: kube-scheduler's part is played by hand."""

import asyncio
from typing import Any

import aiohttp
import pytest

from extender.app import run_extender
from extender.settings import ExtenderSettings
from kube.api.client import KubeClient
from service.settings import Address
from state.log.log import DecisionLog
from tests.support.services.extender import NODES, PODS, Caller, create
from tests.support.twins.log import MemoryDecisions

DECISIONS = "/v1/decisions?limit=1&subject=lab/bert"


async def test_a_pod_is_filtered_and_bound_with_its_placement(
    client: KubeClient, caller: Caller
) -> None:
    pod = await create(client, "bert")

    answer = await caller.filter(pod)
    assert answer["NodeNames"] == ["node-00"]
    assert await caller.filter(pod) == answer
    assert await caller.bind(pod, "node-00") == ""

    stored = await client.request("GET", f"{PODS}/bert")
    assert stored["spec"]["nodeName"] == "node-00"
    placement = stored["metadata"]["annotations"]["cellgate.io/placement"]
    assert placement == '{"node":"node-00","leafCells":[0,1,2,3,4,5,6,7]}'


async def test_a_pod_that_was_changed_meanwhile_is_bound_all_the_same(
    client: KubeClient, caller: Caller
) -> None:
    pod = await create(client, "bert")
    await caller.filter(pod)
    await asyncio.sleep(0.05)
    await client.request(
        "PATCH",
        f"{PODS}/bert",
        body={"metadata": {"labels": {"x": "y"}}},
        content_type="application/merge-patch+json",
    )

    assert await caller.bind(pod, "node-00") == ""


async def test_a_pod_is_bound_only_where_it_was_placed(client: KubeClient, caller: Caller) -> None:
    pod = await create(client, "bert")
    assert "holds no lease" in await caller.bind(pod, "node-00")

    await caller.filter(pod)
    assert "was placed on node-00, not on node-01" in await caller.bind(pod, "node-01")
    assert await caller.bind(pod, "node-00") == ""
    assert await caller.bind(pod, "node-00") == ""  # whoever asks twice


async def test_a_namesake_is_not_bound(client: KubeClient, caller: Caller) -> None:
    pod = await create(client, "bert")
    await caller.filter(pod)
    await client.request("DELETE", f"{PODS}/bert", query={"gracePeriodSeconds": "0"})
    await create(client, "bert")

    assert await caller.bind(pod, "node-00") != ""


async def test_whole_nodes_are_understood_and_answered_with_whole_nodes(
    client: KubeClient, caller: Caller
) -> None:
    pod = await create(client, "bert")
    nodes = (await client.request("GET", "/api/v1/nodes"))["items"]
    body = {"Pod": pod, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
    answer = await caller.ask("filter", body)
    assert answer["Nodes"]["items"] == [nodes[0]]


async def test_only_a_node_that_is_offered_is_ever_named(
    client: KubeClient, caller: Caller
) -> None:
    pod = await create(client, "bert")
    assert (await caller.filter(pod, ["node-01"]))["NodeNames"] == ["node-01"]
    answer = await caller.filter(pod, ["node-00"])
    assert answer["NodeNames"] == []
    assert "has a place on node node-01" in answer["FailedAndUnresolvableNodes"]["node-00"]
    assert (await caller.filter(pod, NODES))["NodeNames"] == ["node-01"]


async def test_the_end_of_a_pod_frees_its_leaf_cells(client: KubeClient, caller: Caller) -> None:
    first, second = await create(client, "first"), await create(client, "second")
    await caller.filter(first, ["node-00"])
    await caller.bind(first, "node-00")
    assert (await caller.filter(second, ["node-00"]))["NodeNames"] == []

    await client.request("DELETE", f"{PODS}/first", query={"gracePeriodSeconds": "0"})
    async with asyncio.timeout(10):
        while (await caller.filter(second, ["node-00"]))["NodeNames"] != ["node-00"]:
            await asyncio.sleep(0.01)


async def test_nobodys_victims_are_named(client: KubeClient, caller: Caller) -> None:
    pod = await create(client, "bert")
    victims = {"node-00": {"Pods": [{"UID": "x"}], "NumPDBViolations": 0}}
    body = {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}

    assert await caller.ask("preempt", body) == {"NodeNameToMetaVictims": {}}


async def test_prioritize_prefers_the_chosen_node(client: KubeClient, caller: Caller) -> None:
    pod = await create(client, "bert")
    await caller.filter(pod)

    answer = await caller.ask("prioritize", {"Pod": pod, "NodeNames": NODES})
    assert answer == [{"Host": "node-00", "Score": 10}, {"Host": "node-01", "Score": 0}]


async def test_a_pod_without_leaf_cells_may_go_anywhere(caller: Caller) -> None:
    pod = {"metadata": {"name": "x", "uid": "u"}, "spec": {"containers": [{"name": "main"}]}}
    assert (await caller.filter(pod))["NodeNames"] == NODES


async def test_what_is_held_and_decided_can_be_looked_at(
    client: KubeClient, caller: Caller
) -> None:
    pod = await create(client, "bert-0", gang="bert", gang_size="2")
    await caller.filter(pod)

    (gang,) = (await caller.get("/v1/gangs"))["items"]
    leaves = list(range(8))
    assert gang == {
        "gang": "lab/bert",
        "size": 2,
        "vc": "lab",
        "priority": 0,
        "state": "allocated",
        "guaranteed": False,
        "members": [
            {
                "pod": "lab/bert-0",
                "uid": pod["metadata"]["uid"],
                "bound": False,
                "node": "node-00",
                "leafCells": leaves,
            }
        ],
        "held": [{"node": "node-01", "leafCells": leaves}],
    }
    nodes = (await caller.get("/v1/nodes"))["items"]
    assert [node["leafCells"]["used"] for node in nodes] == [8, 8]
    assert nodes[0]["holders"] == [
        {
            "leafCells": leaves,
            "gang": "lab/bert",
            "pod": "lab/bert-0",
            "uid": pod["metadata"]["uid"],
            "user": "system:serviceaccount:lab:default",
            "vc": "lab",
        }
    ]
    assert nodes[1]["holders"] == [{"leafCells": leaves, "gang": "lab/bert"}]
    assert nodes[1]["cpu"] == {"total": 64.0, "used": 0.0, "free": 64.0}
    assert str(nodes[1]["memory"]["total"]) == str(512 << 30)
    async with asyncio.timeout(10):
        while not (rows := (await caller.get(DECISIONS))["items"]):
            await asyncio.sleep(0.01)
    assert (rows[0]["outcome"], rows[0]["reason"]) == ("placed", "placed on node-00")
    metrics = await caller.text("/metrics")
    assert "cellgate_log_dropped_rows_total" in metrics
    assert 'cellgate_extender_decisions_total{outcome="placed"} 1.0' in metrics
    assert await caller.get("/v1/decisions?limit=many") == 400


GARBAGE = [
    b"",
    b"\x00\xff",
    b"null",
    b"[]",
    b'"text"',
    b"{}",
    b'{"Pod": null}',
    b'{"Pod": {"metadata": [], "spec": 7}, "NodeNames": ["n"]}',
    b'{"Pod": {"spec": {"containers": {"a": 1}}}, "NodeNames": ["n"]}',
    b'{"PodName": 1, "PodUID": [], "Node": null}',
    b'{"Pod": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"Pod": {"metadata": {"name": "x"}, "spec": {"containers": [{"resources": {"limits": '
    b'{"nvidia.com/gpu": "99999999999999999999"}}}]}}, "NodeNames": ["n"]}',
]


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt", "bind"])
async def test_garbage_is_refused_and_changes_nothing(caller: Caller, verb: str) -> None:
    before = await caller.get("/v1/nodes"), await caller.get("/v1/gangs")
    for body in GARBAGE:
        answer = await caller.ask(verb, body)
        if verb in ("filter", "bind"):
            assert answer["Error"], body
        else:
            nothing = [{"NodeNameToMetaVictims": {}}, [], [{"Host": "n", "Score": 0}]]
            assert answer == 400 or answer in nothing, body
    assert (await caller.get("/v1/nodes"), await caller.get("/v1/gangs")) == before


async def test_nothing_is_answered_from_half_known_state(client: KubeClient) -> None:
    class Unreachable(KubeClient):
        def __init__(self) -> None:
            pass

        async def request(self, *_: Any, **__: Any) -> dict[str, Any]:
            await asyncio.Event().wait()
            raise AssertionError

    settings = ExtenderSettings(address=Address(host="127.0.0.1", port=0))
    log = DecisionLog(MemoryDecisions())
    async with (
        run_extender(settings, client=Unreachable(), log=log) as extender,
        aiohttp.ClientSession() as http,
    ):
        caller = Caller(http, extender.url)
        answer = await caller.filter(await create(client, "bert"))
        assert answer["Error"] == (
            "extender is not ready: waiting for: policies synced; waiting for: namespaces synced; "
            "waiting for: nodes synced; waiting for: pods synced; "
            "waiting for: a valid Cluster document; "
            "waiting for: state recovered from running pods, or another replica leads"
        )
        assert await caller.get("/leader") == 503
