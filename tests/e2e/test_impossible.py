"""What can never be is told at apply: promises beyond the nodes, and workloads beyond promises."""

import asyncio
import json
from typing import Any

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.kubectl import KubectlResult
from tests.controlplane.nodes import NodeShape
from tests.controlplane.waiting import poll_until
from tests.support.installed.installation import NAMESPACE, Installation
from tests.support.installed.policies import policy_of_admin

RACK, NODE = "topology.kubernetes.io/rack", "kubernetes.io/hostname"
TYPE = NodeShape().gpu_product


@pytest.fixture(scope="module")
def node_count() -> int:
    """Two racks of four nodes."""
    return 8


async def apply(
    plane: ControlPlane, obj: dict[str, Any], *, namespace: str = NAMESPACE, user: str = "admin"
) -> KubectlResult:
    text = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", **obj})
    arguments = ("apply", "-n", namespace, "-f", "-")
    return await plane.kubectl(*arguments, stdin=text, user=user, check=False)


def cluster(*, expected: str = "[]", **vcs: tuple[str, int]) -> dict[str, Any]:
    promises = {
        name: {"virtualCells": [{"leafType": TYPE, "level": level, "cellNumber": count}]}
        for name, (level, count) in vcs.items()
    }
    text = f"""
nodeTopology:
- levels: [{RACK}, {NODE}]
  leafResource: nvidia.com/gpu
  leafTypeLabel: nvidia.com/gpu.product
expectedNodes: {expected}
virtualClusters: {json.dumps({"default": {"virtualCells": []}, **promises})}
"""
    return policy_of_admin("cluster", text)


async def backing(cellgate: Installation) -> dict[str, list[tuple[int, int]]]:
    """Promised and backed cells by VC."""
    items = (await cellgate.inspect("/v1/vcs"))["items"]
    return {vc["vc"]: [(one["promised"], one["backed"]) for one in vc["promises"]] for vc in items}


async def is_backed(cellgate: Installation, **wanted: list[tuple[int, int]]) -> None:
    found: dict[str, Any] = {}

    async def look() -> bool:
        found.update(await backing(cellgate))
        return all(found.get(vc) == cells for vc, cells in wanted.items())

    await poll_until(look, deadline_seconds=15, explain=lambda: f"{found} is not {wanted}")


async def test_only_a_promise_that_a_change_raises_beyond_the_nodes_is_refused(
    plane: ControlPlane, cellgate: Installation
) -> None:
    assert (await apply(plane, cluster(lab=(RACK, 1), big=(RACK, 1)))).returncode == 0
    await is_backed(cellgate, lab=[(1, 1)], big=[(1, 1)])

    refused = await apply(plane, cluster(lab=(NODE, 2), big=(RACK, 30)))
    assert refused.returncode == 1
    assert (
        f'virtualClusters.big.virtualCells[0].cellNumber: 30 cells of level "{RACK}" promised, but '
        f'nodes of leaf type "{TYPE}" seen in the last 7 days do not back it: of level "{RACK}", '
        "30 are promised in all and 2 can be given; lower it, or declare nodes that will be added "
        "under expectedNodes"
    ) in refused.stderr

    coming = f"[{{leafType: {TYPE}, nodes: 30, leafCells: 8}}]"
    assert (
        await apply(plane, cluster(expected=coming, lab=(NODE, 2), big=(RACK, 30)))
    ).stderr == ""
    await is_backed(cellgate, lab=[(2, 2)], big=[(30, 1)])
    events = await plane.kubectl("get", "events", "-n", NAMESPACE, "-o", "json")
    told = [one for one in json.loads(events.stdout)["items"] if one["reason"] == "PromisesCut"]
    assert [one["type"] for one in told] == ["Warning"]
    assert "30 cells promised" in told[0]["message"]
    assert "back only 1 of them" in told[0]["message"]


async def test_during_an_outage_the_document_can_be_edited(
    plane: ControlPlane, cellgate: Installation
) -> None:
    assert (await apply(plane, cluster(lab=(NODE, 4), big=(RACK, 1)))).returncode == 0
    await is_backed(cellgate, lab=[(4, 4)], big=[(1, 1)])
    gone = [0, 1, 2, 4, 5]
    await plane.delete_nodes([f"node-{number}" for number in gone])
    await is_backed(cellgate, lab=[(4, 2)], big=[(1, 1)])
    await asyncio.sleep(1)  # the leader notes which nodes are gone
    for document in (cluster(lab=(NODE, 3), big=(RACK, 1)), cluster(lab=(NODE, 4), big=(RACK, 1))):
        assert (await apply(plane, document)).returncode == 0
    assert (await apply(plane, cluster(lab=(NODE, 5), big=(RACK, 1)))).returncode == 1
    for number in gone:
        await plane.add_nodes(1, NodeShape(gpus=8), first=number)
    await is_backed(cellgate, lab=[(4, 4)], big=[(1, 1)])
