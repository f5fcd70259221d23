"""Cells as the cluster document says: from a ConfigMap or a file, changed while gangs run."""

from collections.abc import Awaitable
from pathlib import Path

import pytest
import yaml

from kube.api.client import MERGE_PATCH, KubeClient
from policy.errors import SettingsError
from tests.support.eventually import until
from tests.support.policy.cluster_texts import derived_text, hived_text
from tests.support.policy.documents import TWO_CLASSES_TEXT
from tests.support.services.extender import Caller, create, events, extending
from tests.support.services.simulated_cluster import simulated

CLUSTER = "/api/v1/namespaces/cellgate-system/configmaps/cellgate-cluster"
DOWNGRADED = (
    "gang lab/first is now opportunistic and may be preempted: promises to VC lab, or the nodes "
    "that back them, have changed, and the VC has no cells left for it"
)
FOUR = [f"node-{index:02}" for index in range(4)]


async def apply(client: KubeClient, text: str) -> None:
    body = {"data": {"policy.yaml": text}}
    await client.request("PATCH", CLUSTER, body=body, content_type=MERGE_PATCH)


async def vcs(caller: Caller) -> dict[str, int]:
    """How many cells each VC was promised."""
    return {vc["vc"]: len(vc["cells"]) for vc in (await caller.get("/v1/vcs"))["items"]}


async def backing(caller: Caller) -> dict[str, list[tuple[int, int]]]:
    """Promised and backed cells of each VC."""
    return {
        vc["vc"]: [(one["promised"], one["backed"]) for one in vc["promises"]]
        for vc in (await caller.get("/v1/vcs"))["items"]
    }


async def _events_of(client: KubeClient, count: int) -> list[tuple[str, str]] | None:
    found = await events(client, about="cellgate-cluster")
    return found if len(found) == count else None


@pytest.mark.parametrize("text", [hived_text(lab=1), derived_text(lab=1)], ids=["hived", "derived"])
async def test_a_vc_gets_its_share_and_not_more(tmp_path: Path, text: str) -> None:
    async with (
        simulated(tmp_path, nodes=4, racks=2, policies={"cluster": text}) as client,
        extending(client) as caller,
    ):
        first, second = await create(client, "first"), await create(client, "second")
        await caller.place(first, FOUR)

        answer = await caller.filter(second, FOUR)
        assert answer["NodeNames"] == []
        (reason,) = answer["FailedAndUnresolvableNodes"].values()
        assert reason.startswith(
            "gang lab/second needs 8 leaf cells in one cell of VC lab; 0 of the 8 "
            "leaf cells promised to VC lab are unused; starts once other gangs of VC lab"
        )
        assert await caller.filter(second, FOUR) == answer
        assert "cellgate_extender_repeats_total 1.0" in await caller.text("/metrics")


async def test_a_changed_document_is_in_force_at_once_and_nothing_that_runs_ends(
    tmp_path: Path,
) -> None:
    async with (
        simulated(tmp_path, nodes=4, racks=2, policies={"cluster": hived_text(lab=1)}) as client,
        extending(client) as caller,
    ):
        first, second = await create(client, "first"), await create(client, "second")
        node = await caller.place(first, FOUR)
        await apply(client, hived_text(lab=2, other=1))
        await until(lambda: _is(vcs(caller), {"lab": 2, "other": 1}))

        assert await caller.place(second, FOUR) != node
        gangs = (await caller.get("/v1/gangs"))["items"]
        assert [gang["guaranteed"] for gang in gangs] == [True, True]


async def test_a_gang_that_loses_its_guarantee_to_a_change_of_promises_is_told(
    tmp_path: Path,
) -> None:
    async with (
        simulated(tmp_path, nodes=4, racks=2, policies={"cluster": hived_text(lab=1)}) as client,
        extending(client) as caller,
    ):
        await caller.place(await create(client, "first"), FOUR)
        await apply(client, hived_text(lab=0, other=4))
        found = await until(lambda: events(client, about="first"))
        assert ("Downgraded", DOWNGRADED) in found
        (gang,) = (await caller.get("/v1/gangs"))["items"]
        assert gang["guaranteed"] is False
        await apply(client, hived_text(lab=1))
        again = ("Promoted", "gang lab/first is guaranteed again: VC lab has cells for it")
        await until(lambda: _is_told(client, again))


async def _is_told(client: KubeClient, event: tuple[str, str]) -> bool:
    return event in await events(client, about="first")


async def test_a_bad_document_does_not_get_in_and_everybody_is_told(tmp_path: Path) -> None:
    async with (
        simulated(tmp_path, nodes=4, racks=2, policies={"cluster": hived_text(lab=1)}) as client,
        extending(client) as caller,
    ):
        await apply(client, hived_text(lab=99))
        (event,) = await until(lambda: events(client, about="cellgate-cluster"))
        assert event[0] == "InvalidPolicy"
        assert "last valid version, if any, stays in force: virtualClusters: chain" in event[1]
        assert await vcs(caller) == {"lab": 1}
        assert "cellgate_extender_policy_problems 1.0" in await caller.text("/metrics")

        await apply(client, hived_text(lab=2))
        await until(lambda: _is(vcs(caller), {"lab": 2}))
        assert "cellgate_extender_policy_problems 0.0" in await caller.text("/metrics")


async def test_a_document_that_goes_while_gangs_run_stays_in_force(tmp_path: Path) -> None:
    async with (
        simulated(tmp_path, nodes=4, racks=2, policies={"cluster": hived_text(lab=1)}) as client,
        extending(client) as caller,
    ):
        await caller.place(await create(client, "first"), FOUR)
        await client.request("DELETE", CLUSTER)
        await until(lambda: _has(caller, "cellgate_extender_policy_problems 1.0"))
        assert await vcs(caller) == {"lab": 1}


async def test_derived_cells_follow_the_nodes(tmp_path: Path) -> None:
    async with (
        simulated(tmp_path, nodes=4, racks=2, policies={"cluster": derived_text(lab=2)}) as client,
        extending(client) as caller,
    ):
        assert len((await caller.get("/v1/cells"))["items"]) == 2
        for name in FOUR[2:]:
            await client.request("DELETE", f"/api/v1/nodes/{name}")
        await until(lambda: _has_racks(caller, 1))
        assert await vcs(caller) == {"lab": 2}


async def test_promises_that_nodes_cannot_back_are_cut_fairly_and_shown(tmp_path: Path) -> None:
    text = derived_text(lab=30, other=2)
    async with (
        simulated(tmp_path, nodes=4, racks=2, policies={"cluster": text}) as client,
        extending(client) as caller,
    ):
        assert await backing(caller) == {"lab": [(30, 2)], "other": [(2, 2)]}
        metrics = await caller.text("/metrics")
        labels = 'domain="",leaf_type="A100",level="kubernetes.io/hostname",vc="lab"'
        assert f"cellgate_extender_promised_cells{{{labels}}} 30.0" in metrics
        assert f"cellgate_extender_backed_cells{{{labels}}} 2.0" in metrics
        (event,) = await until(lambda: events(client, about="cellgate-cluster"))
        assert event == (
            "PromisesCut",
            "Cut until nodes are added: virtualClusters.lab.virtualCells[0]: 30 cells promised of "
            'level "kubernetes.io/hostname", but the nodes of leaf type "A100" back only 2 of '
            "them: VCs share the leaf cells equally, as far as whole cells allow",
        )
        for name in ("first", "second"):
            await caller.place(await create(client, name), FOUR)
        (reason,) = (await caller.filter(await create(client, "third"), FOUR))[
            "FailedAndUnresolvableNodes"
        ].values()
        assert (
            "of the promise to VC lab, the nodes back only 2 of 30 cells of level "
            "kubernetes.io/hostname and type A100" in reason
        )
        await apply(client, derived_text(lab=2, other=2))
        await until(lambda: _is(backing(caller), {"lab": [(2, 2)], "other": [(2, 2)]}))
        told = await until(lambda: _events_of(client, 2))
        assert ("PromisesBacked", "Nodes back all promises to VCs again") in told


async def test_a_promise_that_becomes_unclear_is_kept_and_shown(tmp_path: Path) -> None:
    entry = {
        "levels": ["kubernetes.io/hostname"],
        "leafResource": "nvidia.com/gpu",
        "leafTypeLabel": "nvidia.com/gpu.product",
    }
    document = yaml.safe_load(derived_text(lab=3, other=1))
    document["nodeTopology"] = [{**entry, "nodeSelector": {"pool": "east"}}, entry]
    async with (
        simulated(
            tmp_path, nodes=4, racks=2, policies={"cluster": yaml.safe_dump(document)}
        ) as client,
        extending(client) as caller,
    ):
        assert await backing(caller) == {"lab": [(3, 3)], "other": [(1, 1)]}
        assert await events(client, about="cellgate-cluster") == []
        for name in FOUR[:2]:
            await client.request(
                "PATCH",
                f"/api/v1/nodes/{name}",
                body={"metadata": {"labels": {"pool": "east"}}},
                content_type=MERGE_PATCH,
            )
        (event,) = await until(lambda: events(client, about="cellgate-cluster"))
        assert event == (
            "PromisesUnclear",
            "Give entries of nodeTopology names, and promises a domain: "
            "virtualClusters.lab.virtualCells[0]: 3 cells promised of level "
            '"kubernetes.io/hostname" could be of any of the chains "A100", "A100#1"; they are '
            "spread over these; virtualClusters.other.virtualCells[0]: 1 cell promised of level "
            '"kubernetes.io/hostname" could be of any of the chains "A100", "A100#1"; they are '
            "spread over these",
        )
        assert await backing(caller) == {"lab": [(3, 3)], "other": [(1, 1)]}


async def test_a_cluster_file_is_followed_and_the_config_map_ignored(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(hived_text(lab=1))
    async with (
        simulated(tmp_path, nodes=4, racks=2, policies={"cluster": hived_text(lab=3)}) as client,
        extending(client, cluster_file=file) as caller,
    ):
        assert await vcs(caller) == {"lab": 1}
        file.write_text("physicalCluster: [")
        await until(lambda: _has(caller, "cellgate_extender_policy_problems 2.0"))
        assert await vcs(caller) == {"lab": 1}
        file.write_text(hived_text(lab=2))
        await until(lambda: _is(vcs(caller), {"lab": 2}))


@pytest.mark.parametrize("text", ["", hived_text(lab=99)], ids=["missing", "bad"])
async def test_a_file_that_cannot_be_used_at_the_start_is_a_usage_error(
    tmp_path: Path, client: KubeClient, text: str
) -> None:
    file = tmp_path / "cluster.yaml"
    if text:
        file.write_text(text)
    with pytest.raises(SettingsError, match=r"--cluster"):
        async with extending(client, cluster_file=file):
            pass


async def test_the_class_is_the_engines_priority(tmp_path: Path) -> None:
    policies = {"cluster": hived_text(lab=1), "classes": TWO_CLASSES_TEXT}
    async with (
        simulated(tmp_path, nodes=4, racks=2, policies=policies) as client,
        extending(client) as caller,
    ):
        await caller.place(await create(client, "good", class_name="prod"), FOUR)
        await caller.place(await create(client, "free"), FOUR)
        gangs = (await caller.get("/v1/gangs"))["items"]
        told = {gang["gang"]: (gang["priority"], gang["guaranteed"]) for gang in gangs}
        assert told == {"lab/free": (-1, False), "lab/good": (100, True)}

        refused = await caller.filter(await create(client, "bad", class_name="test"), FOUR)
        assert 'class "test" is not in the Classes document' in refused["Error"]


async def _is(found: Awaitable[object], wanted: object) -> bool:
    return await found == wanted


async def _has(caller: Caller, line: str) -> bool:
    return line in await caller.text("/metrics")


async def _has_racks(caller: Caller, count: int) -> bool:
    return len((await caller.get("/v1/cells"))["items"]) == count
