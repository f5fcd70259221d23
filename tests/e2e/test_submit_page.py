"""Every example of docs/submit.md is applied with kubectl by a user, and its pods start."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio
import yaml

from tests.controlplane.api import JsonObject
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.nodes import NodeShape
from tests.controlplane.waiting import poll_until
from tests.support.documents.submit_page import Example, examples
from tests.support.installed.installation import Installation, installed
from tests.support.installed.policies import put_policy
from tests.support.kube.custom_kinds import CRDS, OPERATED, CustomKind
from tests.zoo import surroundings

NAMESPACE: Final = "ml"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
BUILT_IN: Final = {"v1", "batch/v1", "apps/v1", "policy/v1", "scheduling.k8s.io/v1beta1"}
CLUSTER: Final = """
nodeTopology:
- levels: [topology.kubernetes.io/rack, kubernetes.io/hostname]
  leafResource: nvidia.com/gpu
  leafTypeLabel: nvidia.com/gpu.product
virtualClusters:
  lab: {virtualCells: [{leafType: A100, level: kubernetes.io/hostname, cellNumber: 32}]}
  default: {virtualCells: [{leafType: A100, level: kubernetes.io/hostname, cellNumber: 8}]}
  shared: {virtualCells: [{leafType: A100, level: kubernetes.io/hostname, cellNumber: 4}]}
"""
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def plane_options(binaries: Binaries) -> ControlPlaneOptions:
    return surroundings.options(binaries)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane) -> AsyncIterator[Installation]:
    """Cellgate with the VCs, groups and kinds that the examples name, and nodes for all of them."""
    await plane.add_nodes(48, NodeShape(gpus=8, gpu_product="A100"))
    async with installed(plane) as installation:
        templates = [template for kind in OPERATED for template in kind.identity_templates()]
        await put_policy(plane, "rules", "rules: []\n")
        await put_policy(plane, "cluster", CLUSTER)
        await put_policy(plane, "quotas", "groups: [{name: vision, users: [{name: alice}]}]\n")
        await put_policy(plane, "identity", f"templates: {json.dumps(templates)}\n")
        await plane.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield installation


async def test_every_example_is_accepted_and_its_pods_get_nodes(
    plane: ControlPlane, cellgate: Installation
) -> None:
    shown = [example for example in examples() if _is_for(plane, example)]
    await _define_kinds(plane, shown)
    for example in shown:
        text = yaml.safe_dump_all(example.objects)
        await plane.kubectl("apply", "-f", "-", user="alice", stdin=text)
        await asyncio.gather(*(_run_now(plane, obj) for obj in example.objects))
    wanted = {name: count for example in shown for name, count in _pods_of(example).items()}
    assert len(wanted) >= len(shown) // 2
    await _until_placed(plane, wanted)


def _is_for(plane: ControlPlane, example: Example) -> bool:
    """Whether this version of Kubernetes has the kinds of an example."""
    versions = {obj["apiVersion"] for obj in example.objects}
    return plane.binaries.has_pod_groups or "scheduling.k8s.io/v1beta1" not in versions


async def _define_kinds(plane: ControlPlane, shown: list[Example]) -> None:
    """Let the API server know the kinds of other projects, and the user create all of them."""
    objects = [obj for example in shown for obj in example.objects]
    kinds = {
        (obj["apiVersion"], obj["kind"]) for obj in objects if obj["apiVersion"] not in BUILT_IN
    }
    for version, kind in sorted(kinds):
        custom = CustomKind(version, kind, f"{kind.lower()}s")
        await plane.api.create(CRDS, custom.definition())
        await plane.api.wait_until(f"{CRDS}/{custom.plural}.{custom.group}", _is_served)
    groups = sorted({version.split("/")[0] for version, _ in kinds} | {"scheduling.k8s.io"})
    rule = {"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}
    await plane.api.create(f"{RBAC}/clusterroles", {"metadata": {"name": "all"}, "rules": [rule]})
    alice = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"}
    binding = {"metadata": {"name": "all"}, "roleRef": role, "subjects": [alice]}
    await plane.api.create(f"{RBAC}/clusterrolebindings", binding)


def _is_served(definition: JsonObject) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


async def _run_now(plane: ControlPlane, obj: dict[str, Any]) -> None:
    """Start a run of a CronJob by hand, instead of waiting for its time."""
    if obj["kind"] == "CronJob":
        name = obj["metadata"]["name"]
        source = (f"--from=cronjob/{name}", "--namespace", NAMESPACE)
        await plane.kubectl("create", "job", f"{name}-now", *source, user="alice")


def _pods_of(example: Example) -> dict[str, int]:
    """How many pods Kubernetes creates for each object, by the start of their names."""
    counts: dict[str, int] = {}
    for obj in example.objects:
        name, spec = obj["metadata"]["name"], obj.get("spec", {})
        match obj["kind"]:
            case "Pod":
                counts[name] = 1
            case "Job":
                counts[f"{name}-"] = 0 if spec.get("suspend") else spec.get("parallelism", 1)
            case "CronJob":
                counts[f"{name}-now-"] = spec["jobTemplate"]["spec"].get("parallelism", 1)
            case "Deployment" | "StatefulSet" | "ReplicaSet":
                counts[f"{name}-"] = spec.get("replicas", 1)
    return counts


async def _until_placed(plane: ControlPlane, wanted: dict[str, int]) -> None:
    late: list[str] = []

    async def all_placed() -> bool:
        pods = await plane.api.list(PODS)
        placed = [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]
        late[:] = [
            f"{start}: {found} of {count} pods have nodes"
            for start, count in wanted.items()
            if (found := sum(name.startswith(start) for name in placed)) < count
        ]
        return not late

    await poll_until(all_placed, deadline_seconds=60, explain=lambda: "; ".join(late))
