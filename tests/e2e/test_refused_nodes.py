"""Gangs that use other nodes: refused by kube-scheduler, or another leaf type by an alternative."""

import time
from collections.abc import Sequence

import pytest

from kube import marks
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import NodeShape
from tests.controlplane.waiting import poll_until
from tests.support.installed.gangs import a_gang_pod, create, end, gang_pods, running
from tests.support.installed.installation import Installation
from tests.support.kube.pods import a_new_pod

_START_SECONDS = 8.0
"""Sooner than refused nodes are tried again without a cause, which takes ten seconds."""
_HALL = "test.cellgate.io/hall"
"""A label of nodes of which the planner knows nothing."""


@pytest.fixture(scope="module")
def node_count() -> int:
    return 4


async def test_a_node_that_was_refused_is_used_as_soon_as_it_has_changed(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    """The planner does not know pod anti-affinity by a label of nodes; kube-scheduler does."""
    await create(plane, pods, gang_pods("fill", size=2, gpus=8))
    taken = [pod["spec"]["nodeName"] for pod in await running(plane, pods, "fill", size=2)]
    nodes = [node["metadata"]["name"] for node in (await plane.api.get("/api/v1/nodes"))["items"]]
    refused, other = (name for name in nodes if name not in taken)
    await _put_into_hall(plane, "one", [*taken, refused])
    await _put_into_hall(plane, "two", [other])
    crowd = a_new_pod("crowd").with_spec(nodeName=taken[0]).ending_at_once()
    await plane.api.create(pods, crowd.labelled("app", "crowd"))
    apart = {"labelSelector": {"matchLabels": {"app": "crowd"}}, "topologyKey": _HALL}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    given_up = 'cellgate_extender_bindings_given_up_total{cause="refused"}'
    before = await cellgate.extender_metric(given_up)
    await create(
        plane, pods, [a_gang_pod("picky", index, size=2, gpus=8, affinity=rule) for index in (0, 1)]
    )

    async def has_given_up() -> bool:
        return await cellgate.extender_metric(given_up) > before

    await poll_until(has_given_up, deadline_seconds=15, explain=lambda: "it keeps its places")
    await _put_into_hall(plane, "three", [refused])
    began = time.monotonic()
    members = await running(plane, pods, "picky", size=2)
    assert time.monotonic() - began < _START_SECONDS
    assert {pod["spec"]["nodeName"] for pod in members} == {refused, other}


async def _put_into_hall(plane: ControlPlane, hall: str, nodes: Sequence[str]) -> None:
    for name in nodes:
        await plane.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {_HALL: hall}}})


async def test_a_gang_uses_its_second_leaf_type_while_the_first_is_full(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    (old,) = await plane.add_nodes(1, NodeShape(gpu_product="V100"), prefix="old")
    new = NodeShape().gpu_product
    try:
        full = [member.wanting(new) for member in gang_pods("full", size=4, gpus=8)]
        await create(plane, pods, full)
        await running(plane, pods, "full", size=4)
        refused = a_gang_pod("bad", 0, size=1, gpus=8).annotated(
            marks.ALTERNATIVES_ANNOTATION, "[{leafCells: 4}]"
        )
        with pytest.raises(ApiError, match="the devices that a pod requests never change"):
            await create(plane, pods, [refused])
        flexible = a_gang_pod("flex", 0, size=1, gpus=8).wanting(new)
        flexible = flexible.annotated(marks.ALTERNATIVES_ANNOTATION, "[{leafType: V100}]")
        await create(plane, pods, [flexible])
        (member,) = await running(plane, pods, "flex", size=1)
        assert member["spec"]["nodeName"] == old
        stated = member["metadata"]["annotations"][marks.ALTERNATIVE_ANNOTATION]
        assert stated.startswith("1 of 1 (leaf type V100): as asked: gang ")
        assert f"needs 8 leaf cells of type {new}" in stated
        await _explained(cellgate, f"{pods.split('/')[4]}/flex-0", "1 of 1 (leaf type V100)")
        await end(plane, pods, "flex", size=1)
    finally:
        await plane.delete_nodes([old])


async def _explained(cellgate: Installation, pod: str, words: str) -> None:
    """Wait until a decision about a pod says so; rows are written behind the decision."""
    found: list[str] = []

    async def is_there() -> bool:
        explained = await cellgate.inspect(f"/v1/explain/{pod}")
        found[:] = [str(row) for row in explained["decisions"]]
        return any(words in row for row in found)

    await poll_until(is_there, deadline_seconds=10, explain=lambda: f"decisions: {found}")
