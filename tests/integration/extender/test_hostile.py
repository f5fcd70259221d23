"""Questions and pods that nobody should send, over HTTP: answered, and nothing is broken."""

import asyncio
import gzip
import logging
from typing import Any

import orjson
import pytest

from kube.api.client import KubeClient
from tests.support.services.extender import NODES, PODS, Caller, create, extending
from tests.support.twins.log import MemoryDecisions


async def fill(client: KubeClient, caller: Caller) -> None:
    """Let both nodes be full."""
    for name in ("full-0", "full-1"):
        await caller.place(await create(client, name))


def bind_by_hand(name: str, node: str) -> dict[str, Any]:
    target = {"kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}


async def test_a_waiting_pod_that_others_bind_does_not_wait_any_more(
    client: KubeClient, caller: Caller
) -> None:
    await fill(client, caller)
    pod = await create(client, "late")
    assert (await caller.filter(pod))["NodeNames"] == []
    assert len((await caller.get("/v1/waiting"))["items"]) == 1

    body = bind_by_hand("late", "node-00")
    await client.request("POST", f"{PODS}/late/binding", body=body)
    await caller.until("/v1/waiting", lambda page: page["items"] == [])
    told = await caller.get("/v1/explain/lab/late")
    assert (told["state"], told["foreign"]) == ("bound", True)
    assert "waiting" not in told


async def test_a_pod_that_makes_no_sense_is_explained(client: KubeClient, caller: Caller) -> None:
    await create(client, "odd", vc="_")
    told = await caller.until("/v1/explain/lab/odd", lambda answer: answer != 404)
    assert told["state"] == "not understood"
    assert "metadata.labels[cellgate.io/vc]" in told["problem"]


async def test_nothing_is_leased_for_a_pod_that_is_bound_or_has_ended(caller: Caller) -> None:
    pod: dict[str, Any] = {
        "metadata": {"name": "x", "namespace": "lab", "uid": "u"},
        "spec": {
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
        },
    }
    bound = {**pod, "spec": {**pod["spec"], "nodeName": "node-01"}}
    ended = {**pod, "status": {"phase": "Succeeded"}}
    assert "already bound to node node-01" in (await caller.filter(bound))["Error"]
    assert "has ended" in (await caller.filter(ended))["Error"]
    assert (await caller.get("/v1/leases"))["items"] == []


async def test_questions_in_any_case_are_understood(client: KubeClient, caller: Caller) -> None:
    pod = await create(client, "bert")
    answer = await caller.ask("filter", {"pod": pod, "nodenames": NODES})
    assert answer["NodeNames"] == ["node-00"]


async def test_a_body_that_breaks_off_or_is_compressed_is_no_fault_of_ours(
    client: KubeClient, caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = caller.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /v1/extender/filter HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.close()

    pod = await create(client, "bert")
    body = gzip.compress(orjson.dumps({"Pod": pod, "NodeNames": NODES}))
    assert "the body is not JSON" in (await caller.ask("filter", body))["Error"]
    assert (await caller.filter(pod))["NodeNames"] == ["node-00"]
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_decisions_come_in_pages_and_an_explanation_without_them(client: KubeClient) -> None:
    store = MemoryDecisions()
    async with extending(client, store=store) as caller:
        for name in ("a", "b"):
            await caller.filter(await create(client, name, leaves=1))
        whole = await caller.until("/v1/decisions", lambda page: len(page["items"]) == 2)
        first = await caller.get("/v1/decisions?limit=1")
        second = await caller.get(f"/v1/decisions?limit=1&after={first['next']}")
        assert [*first["items"], *second["items"]] == whole["items"]
        assert "next" not in second
        assert await caller.get("/v1/decisions?after=x") == 400

        store.is_away = True
        told = await caller.get("/v1/explain/lab/a")
        assert (told["state"], told["decisions"]) == ("placed", [])
        assert told["problem"].startswith("the decision log cannot be read now")
