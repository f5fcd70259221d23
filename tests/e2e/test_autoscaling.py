"""Gangs that wait for nodes are shown to the Cluster Autoscaler, which does not see gated pods."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import NodeShape
from tests.controlplane.waiting import poll_until
from tests.support.installed.gangs import create, gang_pods, running, told
from tests.support.installed.installation import Installation, installed
from tests.support.kube.custom_kinds import CRDS, PROVISIONING_REQUEST

CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"


@pytest.fixture(scope="module")
def node_count() -> int:
    return 1


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane) -> AsyncIterator[Installation]:
    """Cellgate with the component, on a cluster whose autoscaler does nothing."""
    await plane.api.create(CRDS, PROVISIONING_REQUEST.definition())
    flags = ("--provisioning-class", CLASS)
    async with installed(plane, components=("autoscaling",), extender_flags=flags) as installation:
        yield installation


async def test_nodes_are_asked_for_until_the_gang_starts(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    namespace = pods.split("/")[4]
    path = PROVISIONING_REQUEST.path(namespace)
    await create(plane, pods, gang_pods("bert", size=3, gpus=8))

    waiting: list[dict[str, Any]] = []

    async def asked() -> bool:
        waiting[:] = await cellgate.waiting()
        return len(await plane.api.list(path)) == 1

    await poll_until(asked, deadline_seconds=40, explain=lambda: f"not asked for: {waiting}")
    (request,) = await plane.api.list(path)
    assert request["spec"]["provisioningClassName"] == CLASS
    (pod_set,) = request["spec"]["podSets"]
    assert pod_set["count"] == 3
    name = pod_set["podTemplateRef"]["name"]
    template = await plane.api.get(f"/api/v1/namespaces/{namespace}/podtemplates/{name}")
    (container,) = template["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert "schedulingGates" not in template["template"]["spec"]
    assert await told(plane, pods, "bert", reason="NodesRequested") == (
        f"asked for new nodes for gang {namespace}/bert: "
        f"ProvisioningRequest {request['metadata']['name']}"
    )

    await plane.add_nodes(2, NodeShape(gpus=8), first=1)
    await running(plane, pods, "bert", size=3)

    async def taken_back() -> bool:
        return not await plane.api.list(path)

    await poll_until(taken_back, deadline_seconds=20, explain=lambda: "the request stays")

    async def are_gone() -> bool:
        return not await plane.api.list(f"/api/v1/namespaces/{namespace}/podtemplates")

    await poll_until(are_gone, deadline_seconds=5, explain=lambda: "its templates stay")
