"""What people ask, in HiveD's shapes and in ours."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kube import marks
from kube.api.client import KubeClient
from state.log.records import DecisionRecord, RowKind
from tests.support.kube.pods import a_new_pod
from tests.support.policy.cluster_texts import hived_text
from tests.support.policy.documents import TWO_CLASSES_TEXT
from tests.support.services.extender import PODS, Caller, create, extending
from tests.support.services.simulated_cluster import simulated
from tests.support.twins.log import MemoryDecisions

FOUR = [f"node-{index:02}" for index in range(4)]
POLICIES = {"cluster": hived_text(racks=2, nodes=2, lab=2, other=1), "classes": TWO_CLASSES_TEXT}
POD = {
    "spec": {
        "priorityClassName": "prod",
        "containers": [{"name": "m", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
    }
}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[KubeClient]:
    async with simulated(tmp_path, nodes=4, racks=2, policies=POLICIES) as client:
        yield client


async def test_hived_shows_physical_and_virtual_cells(client: KubeClient, caller: Caller) -> None:
    good = await create(client, "good", class_name="prod")
    borrower = await create(client, "borrower", leaves=1, class_name="oppo")
    node = await caller.place(good, FOUR)
    other = await caller.place(borrower, FOUR)

    status = await caller.get("/v1/inspect/clusterstatus")
    tops = status["physicalCluster"]
    assert [(top["cellAddress"], top["leafCellType"], top["cellType"]) for top in tops] == [
        ("0", "A100", "rack"),
        ("1", "A100", "rack"),
    ]
    nodes = {
        cell["cellAddress"].rsplit("/", 1)[-1]: cell for top in tops for cell in top["cellChildren"]
    }
    used = nodes[node]
    assert (used["isNodeLevel"], used["cellState"], used["cellPriority"]) == (True, "Used", 100)
    assert (used["vc"], used["virtualCell"]["cellAddress"]) == ("lab", "lab/0")
    assert [leaf["cellPriority"] for leaf in nodes[other]["cellChildren"]].count(-1) == 1

    mine, free, borrowed = status["virtualClusters"]["lab"]
    assert (mine["cellAddress"], mine["cellPriority"]) == ("lab/0", 100)
    assert mine["physicalCell"]["cellAddress"] == used["cellAddress"]
    assert [child["cellAddress"] for child in mine["cellChildren"]] == [
        f"lab/0/{index}" for index in range(8)
    ]
    assert (free["cellState"], free["cellPriority"]) == ("Free", -2)
    assert len(free["cellChildren"]) == 8
    assert borrowed["cellAddress"].endswith("-opp")
    assert borrowed["cellPriority"] == -1
    assert (
        await caller.get("/v1/inspect/clusterstatus/virtualclusters/other")
        == (status["virtualClusters"]["other"])
    )
    assert await caller.get("/v1/inspect/clusterstatus/virtualclusters/nobody") == 400


async def test_hived_shows_affinity_groups(client: KubeClient, caller: Caller) -> None:
    good = await create(client, "good", class_name="prod")
    node = await caller.place(good, FOUR)

    group = await caller.get("/v1/inspect/affinitygroups/lab/good")
    assert group == {
        "metadata": {"name": "lab/good"},
        "status": {
            "vc": "lab",
            "priority": 100,
            "state": "Allocated",
            "physicalPlacement": {node: list(range(8))},
            "virtualPlacement": {"lab/0": [f"lab/0/{index}" for index in range(8)]},
            "allocatedPods": [good["metadata"]["uid"]],
        },
    }
    assert await caller.get("/v1/inspect/affinitygroups/") == {"items": [group]}
    assert await caller.get("/v1/inspect/affinitygroups/nobody") == 400


async def test_a_live_gang_is_explained_by_its_name(client: KubeClient, caller: Caller) -> None:
    for name in ("a", "b"):
        pod = await create(client, name, gang="pair", gang_size="2", leaves=1, class_name="prod")
        await caller.place(pod, FOUR)

    told = await caller.get("/v1/explain/lab/pair")
    assert (told["gang"], told["state"], len(told["siblings"])) == ("lab/pair", "bound", 1)
    pod = await create(client, "c", gang="pair", gang_size="2", leaves=1, class_name="prod")
    await caller.filter(pod, FOUR)
    told = await caller.get("/v1/explain/lab/pair")
    assert (told["pod"], told["waiting"]["code"]) == ("lab/c", "gang-full"), "one that waits"
    assert "ended" not in told


async def test_what_was_decided_about_a_gang_that_ended_can_be_asked(
    client: KubeClient, caller: Caller
) -> None:
    pod = await create(client, "a", gang="pair", gang_size="1", leaves=1, class_name="prod")
    await caller.place(pod, FOUR)
    path, at_once = "/api/v1/namespaces/lab/pods/a", {"gracePeriodSeconds": "0"}
    await client.request("DELETE", path, query=at_once)
    await caller.until("/v1/gangs", lambda page: page["items"] == [])
    for name in ("a", "pair"):
        told = await caller.until(f"/v1/explain/lab/{name}", lambda told: told["decisions"])
        assert (told["gang"], told["state"]) == ("lab/pair", "gone")
        placed = [row for row in told["decisions"] if row["outcome"] == "placed"]
        assert placed[0]["details"]["decision"]["others"]["members"] == 0
    assert await caller.get("/v1/explain/lab/unknown-0") == 404


async def test_the_admission_of_a_pod_that_kubernetes_names_is_explained(
    client: KubeClient,
) -> None:
    """It is admitted before it has a name: most pods of Jobs are such pods."""
    decision, store = "0a", MemoryDecisions()
    await store.insert([an_admission(f"lab/train-*{decision}", reason="rule 2 lowers it")])
    pod = a_new_pod("train-x7k2p").with_gpus(1).annotated(marks.DECISION_ANNOTATION, decision)
    pod["metadata"]["generateName"] = "train-"
    async with extending(client, store=store) as caller:
        await caller.place(await client.request("POST", PODS, body=pod), FOUR)
        told = await caller.get("/v1/explain/lab/train-x7k2p")
        assert told["decisions"][-1]["reason"] == "rule 2 lowers it"
        at_once = {"gracePeriodSeconds": "0"}
        await client.request("DELETE", f"{PODS}/train-x7k2p", query=at_once)
        await caller.until("/v1/gangs", lambda page: page["items"] == [])
        told = await caller.get("/v1/explain/lab/train-x7k2p")
        assert told["decisions"][-1]["reason"] == "rule 2 lowers it"
        assert (told["gang"], told["state"]) == ("lab/train-x7k2p", "gone")
    async with extending(client, store=store) as later:  # another leader, which never saw the pod
        told = await later.until("/v1/explain/lab/train-x7k2p", lambda told: told != 404)
        assert told["decisions"][-1]["reason"] == "rule 2 lowers it"


def an_admission(subject: str, *, reason: str) -> DecisionRecord:
    return DecisionRecord(
        at=datetime.now(UTC),
        service="webhook",
        kind=RowKind.ADMISSION,
        subject=subject,
        outcome="admitted",
        reason=reason,
        latency_seconds=0.0,
    )


async def test_a_gang_that_its_owner_must_change_is_refused_and_not_queued(
    client: KubeClient, caller: Caller
) -> None:
    for name, size in (("a", "2"), ("b", "3")):
        pod = await create(client, name, gang="pair", gang_size=size, leaves=1, class_name="prod")
        await caller.filter(pod, FOUR)
    told = await caller.get("/v1/explain/lab/b")
    assert (told["state"], told["waiting"]["waitsFor"]) == ("refused", "owner")
    assert told["waiting"]["code"] == "gang-mismatch"


async def test_a_pod_that_waits_is_explained(client: KubeClient, caller: Caller) -> None:
    for name in ("one", "two"):
        await caller.place(await create(client, name, class_name="prod"), FOUR)
    await caller.filter(await create(client, "waits", class_name="prod"), FOUR)

    told = await caller.get("/v1/explain/lab/waits")
    assert (told["state"], told["waiting"]["code"], told["vc"]) == ("waiting", "vc-full", "lab")
    assert told["waiting"]["change"].startswith("starts once other gangs of")
    placed = await caller.get("/v1/explain/lab/one")
    assert (placed["state"], placed["priority"]) == ("bound", 100)
    assert placed["placement"]["vcCell"] == "lab/0"
    assert await caller.get("/v1/explain/lab/unknown") == 404
    metric = 'cellgate_extender_waiting_gangs{reason="vc-full",vc="lab"} 1.0'
    assert metric in await caller.text("/metrics")


async def test_a_pod_is_simulated_and_nothing_changes(client: KubeClient, caller: Caller) -> None:
    for index in range(4):
        await caller.place(await create(client, f"b-{index}", class_name="oppo"), FOUR)
    before = await caller.get("/v1/gangs")

    asked: dict[str, Any] = {"pod": {"metadata": {"namespace": "lab"}, **POD}, "user": "alice"}
    told = await caller.post("/v1/simulate", asked)
    assert told["outcome"] == "preempting"
    assert len(told["victims"]) == len(told["victimPods"]) == 1
    assert told["admission"]["explanation"][-1] == "No rule applied."
    assert (told["admission"]["class"], told["warnings"]) == ("prod", [])
    assert "has no ledger" in told["problems"][0]
    assert await caller.get("/v1/gangs") == before
    offered = await caller.post("/v1/simulate", {**asked, "nodes": []})
    assert (offered["outcome"], offered["victims"]) == ("no-room", [])
    assert await caller.post("/v1/simulate", {"pod": {"spec": {}}}) == 400
    assert await caller.post("/v1/simulate", {}) == 400


async def test_long_lists_come_in_pages(client: KubeClient, caller: Caller) -> None:
    first = await caller.get("/v1/nodes?limit=3")
    rest = await caller.get(f"/v1/nodes?limit=3&after={first['next']}")
    assert [node["name"] for node in [*first["items"], *rest["items"]]] == FOUR
    assert "next" not in rest
    assert await caller.get("/v1/nodes?limit=0") == 400


async def test_a_lease_is_shown_until_it_is_bound(client: KubeClient, caller: Caller) -> None:
    gang = [
        await create(client, f"g-{i}", gang="g", gang_size="2", class_name="prod") for i in range(2)
    ]
    await caller.place(gang[0], FOUR)
    (lease,) = (await caller.get("/v1/leases"))["items"]
    assert (lease["gang"], lease["members"], len(lease["held"])) == ("lab/g", [], 1)
    await caller.place(gang[1], FOUR)
    assert (await caller.get("/v1/leases"))["items"] == []


async def test_every_route_is_in_the_openapi_document(client: KubeClient, caller: Caller) -> None:
    document = await caller.get("/openapi.json")
    served = {path.rstrip("/") for path in (await caller.get("/"))["paths"]} - {""}
    assert {path.rstrip("/") for path in document["paths"]} == served
    body = document["paths"]["/v1/simulate"]["post"]["requestBody"]
    assert "pod" in body["content"]["application/json"]["schema"]["properties"]
    needed = {path: next(iter(one.values()))["security"] for path, one in document["paths"].items()}
    assert needed["/readyz"] == []
    assert needed["/v1/extender/bind"] == [{"certificate": []}]
    assert needed["/metrics"] == [{"token": []}, {"certificate": []}]
