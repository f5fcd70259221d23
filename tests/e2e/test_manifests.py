"""Our manifests on a real API server: accepted as they are, updated and drained.

kwok plays the kubelets, so no image is run; what is shown is what Kubernetes itself makes of them.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
import yaml

from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.nodes import NodeShape
from tests.e2e.control_planes import run_control_plane
from tests.support.installed.installation import DEPLOYMENTS, MANIFESTS, NAMESPACE, PROGRAM

REPLICAS = {"cellgate-webhook": 3, "cellgate-extender": 2, "cellgate-scheduler": 2}
OVERLAYS = ("overlays/fail-open", "overlays/fail-closed")
BASE = str(MANIFESTS / "base")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plane(request: pytest.FixtureRequest, binaries: Binaries) -> AsyncIterator[ControlPlane]:
    """A control plane on which our manifests were applied, with nodes for their pods."""
    async with run_control_plane(request, binaries, ControlPlaneOptions()) as plane:
        await plane.add_nodes(2, NodeShape())
        await plane.kubectl("apply", "-k", BASE)
        for name in DEPLOYMENTS:
            await _rolled_out(plane, name)
        yield plane


async def _rolled_out(plane: ControlPlane, name: str) -> None:
    """Wait until every replica of a Deployment is new and ready."""
    await plane.kubectl("rollout", "status", f"deployment/{name}", "-n", NAMESPACE, "--timeout=60s")


async def _pods(plane: ControlPlane, name: str) -> list[dict[str, Any]]:
    query = f"labelSelector=app.kubernetes.io/name={name}"
    pods = await plane.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods?{query}")
    items: list[dict[str, Any]] = pods["items"]
    return items


async def _generations(plane: ControlPlane) -> list[int]:
    """How often what our Deployments and budgets ask for has changed."""
    return [
        (await plane.api.get(f"{group}/{name}"))["metadata"]["generation"]
        for name in DEPLOYMENTS
        for group in (
            f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
            f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
        )
    ]


async def test_every_manifest_is_accepted_and_applied_again_changes_nothing(
    plane: ControlPlane,
) -> None:
    before = await _generations(plane)
    await plane.kubectl("apply", "-k", BASE)
    assert await _generations(plane) == before
    strict = ("--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts")
    for folder in ("base", "examples", *OVERLAYS):
        await plane.kubectl("apply", "-k", str(MANIFESTS / folder), *strict)
    overlay = plane.directory / "gentle"
    overlay.mkdir()
    here = overlay.resolve()
    kustomization = {
        "resources": [os.path.relpath(BASE, here)],
        "components": [os.path.relpath(MANIFESTS / "components" / "gentle-reclaim", here)],
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    await plane.kubectl("apply", "-k", str(overlay), *strict)
    rendered = (await plane.kubectl("kustomize", str(overlay))).stdout
    assert str(rendered).count("CELLGATE_GENTLE_RECLAIM") == 2


async def test_pods_run_as_nobody_with_nothing(plane: ControlPlane) -> None:
    """The namespace enforces the restricted standard; what it does not ask for is checked here."""
    for name in DEPLOYMENTS:
        pods = await _pods(plane, name)
        assert len(pods) == REPLICAS[name]
        for pod in pods:
            (container,) = pod["spec"]["containers"]
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert pod["spec"]["serviceAccountName"] == name
            assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()


async def test_a_pod_with_more_rights_is_refused(plane: ControlPlane) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "root", "namespace": NAMESPACE},
        "spec": {"containers": [{"name": "main", "image": "any"}]},
    }
    result = await plane.kubectl("create", "-f", "-", stdin=yaml.safe_dump(body), check=False)
    assert result.returncode == 1
    assert 'violates PodSecurity "restricted:latest"' in result.stderr


async def test_a_rolling_update_ends_although_only_one_replica_leads(plane: ControlPlane) -> None:
    before = await _pods(plane, "cellgate-extender")
    leader = before[0]["metadata"]["name"]
    await plane.kubectl("label", "pod", leader, "-n", NAMESPACE, "cellgate.io/leader=true")
    for name in DEPLOYMENTS:
        await plane.kubectl("rollout", "restart", f"deployment/{name}", "-n", NAMESPACE)
        await _rolled_out(plane, name)
    after = {pod["metadata"]["uid"] for pod in await _pods(plane, "cellgate-extender")}
    assert after.isdisjoint(pod["metadata"]["uid"] for pod in before)


async def test_a_node_can_be_drained(plane: ControlPlane) -> None:
    """Also with one replica only, where `minAvailable: 1` would hold the drain up for good."""
    for replicas in (2, 1):
        for name in DEPLOYMENTS:
            scale = f"--replicas={replicas}"
            await plane.kubectl("scale", f"deployment/{name}", scale, "-n", NAMESPACE)
            await _rolled_out(plane, name)
        for node in ("node-0", "node-1"):
            flags = ("--delete-emptydir-data", "--timeout=60s")
            await plane.kubectl("drain", node, *flags, deadline_seconds=90)
            await plane.kubectl("uncordon", node)
    for name in DEPLOYMENTS:
        await _rolled_out(plane, name)


async def test_the_service_finds_the_leader_only(plane: ControlPlane) -> None:
    service = await plane.api.get(f"/api/v1/namespaces/{NAMESPACE}/services/cellgate-extender")
    selector = ",".join(f"{key}={value}" for key, value in service["spec"]["selector"].items())
    path = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={selector}"
    assert (await plane.api.get(path))["items"] == []
    leader = (await _pods(plane, "cellgate-extender"))[0]["metadata"]["name"]
    await plane.kubectl("label", "pod", leader, "-n", NAMESPACE, "cellgate.io/leader=true")
    found = (await plane.api.get(path))["items"]
    assert [pod["metadata"]["name"] for pod in found] == [leader]


async def test_the_programs_have_every_flag_of_the_manifests(plane: ControlPlane) -> None:
    helps = {
        "extender": [str(PROGRAM), "extender", "--help"],
        "webhook": [str(PROGRAM), "webhook", "--help"],
        "kube-scheduler": [str(plane.binaries.path("kube-scheduler")), "--help"],
    }
    rendered = (await plane.kubectl("kustomize", BASE)).stdout
    containers = {one["name"]: one for one in _containers(rendered)}
    assert containers.keys() == helps.keys()
    known = {name: await _output_of(*command) for name, command in helps.items()}
    for name, container in containers.items():
        for argument in container["args"]:
            assert f"{argument.partition('=')[0]} " in known[name]
    for name in ("extender", "webhook"):
        for variable in containers[name]["env"]:
            flag = variable["name"].removeprefix("CELLGATE_").replace("_", "-").lower()
            assert f"--{flag} " in known[name]


async def _output_of(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


def _containers(rendered: str) -> Iterator[dict[str, Any]]:
    for document in yaml.safe_load_all(rendered):
        if document["kind"] == "Deployment":
            yield from document["spec"]["template"]["spec"]["containers"]
