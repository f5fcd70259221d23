"""Nodes that kube-scheduler refuses for reasons that the planner does not know."""

import time
from collections.abc import Sequence

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import poll_until
from tests.support.installed.gangs import a_gang_pod, create, gang_pods, running
from tests.support.installed.installation import Installation
from tests.support.kube.pods import a_new_pod

_START_SECONDS = 3.0
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
