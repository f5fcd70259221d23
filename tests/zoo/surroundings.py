"""The control plane of a zoo: Cellgate with two of each service, policies, nodes, kinds, users."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from tests.controlplane.api import JsonObject
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.forwarder import Backend, Forwarder
from tests.controlplane.nodes import NodeShape
from tests.support.installed.installation import Installation, prepared
from tests.support.installed.policies import put_policy
from tests.support.kube.custom_kinds import CRDS, OPERATED

NAMESPACES: Final = {"zoo-lab": "lab", "zoo-default": "default"}
"""Where workloads are, and the VC of each."""
USERS: Final = ("alice", "bob")
NODE_COUNT: Final = 12
SHAPE: Final = NodeShape(gpus=8, nodes_per_rack=4)
OPERATOR_NAMESPACE: Final = "zoo-operator"
_NATIVE: Final = "--feature-gates=GenericWorkload=true"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_GROUP: Final = "rbac.authorization.k8s.io"


def options(binaries: Binaries) -> ControlPlaneOptions:
    """How the control plane is started: with native PodGroups, if this version has them."""
    if not binaries.has_pod_groups:
        return ControlPlaneOptions()
    return ControlPlaneOptions(
        apiserver_flags=(_NATIVE, "--runtime-config=scheduling.k8s.io/v1beta1=true"),
        controller_manager_flags=(_NATIVE,),
        scheduler_flags=(_NATIVE,),
    )


@asynccontextmanager
async def surroundings(plane: ControlPlane) -> AsyncIterator[Installation]:
    """Install everything; it ends with the body."""
    await plane.add_nodes(NODE_COUNT, SHAPE)
    for kind in OPERATED:
        await plane.api.create(CRDS, kind.definition())
    for name, vc in NAMESPACES.items():
        labels = {"cellgate.io/vc": vc}
        await plane.api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    await _grant(plane)
    async with AsyncExitStack() as stack:
        cellgate = await stack.enter_async_context(
            prepared(
                plane,
                extenders=2,
                webhooks=2,
                serves_tls=True,
                components=("gentle-reclaim",),
            )
        )
        leader = [
            Backend(port, f"https://127.0.0.1:{port}/leader") for port in cellgate.extender_ports
        ]
        webhooks = [
            Backend(port, f"https://127.0.0.1:{port}/readyz") for port in cellgate.webhook_ports
        ]
        service = await stack.enter_async_context(Forwarder(leader, poll_seconds=0.1))
        cellgate.scheduler_asks = f"https://127.0.0.1:{service.port}"
        service = await stack.enter_async_context(Forwarder(webhooks, poll_seconds=0.1))
        cellgate.api_server_asks = f"https://127.0.0.1:{service.port}"
        await cellgate.install()
        await _put_policies(plane)
        yield cellgate


async def _grant(plane: ControlPlane) -> None:
    """Users may create PodGroups and custom kinds; the operator may do everything."""
    groups = sorted({"scheduling.k8s.io", *(kind.group for kind in OPERATED)})
    rule = {"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}
    role = {"metadata": {"name": "zoo-user"}, "rules": [rule]}
    await plane.api.create(f"{_RBAC}/clusterroles", role)
    subjects = [{"apiGroup": _GROUP, "kind": "User", "name": user} for user in USERS]
    await _bind(plane, "zoo-user", "zoo-user", subjects)
    await plane.api.create("/api/v1/namespaces", {"metadata": {"name": OPERATOR_NAMESPACE}})
    path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/serviceaccounts"
    await plane.api.create(path, {"metadata": {"name": "operator"}})
    account = {"kind": "ServiceAccount", "name": "operator", "namespace": OPERATOR_NAMESPACE}
    await _bind(plane, "zoo-operator", "cluster-admin", [account])


async def _bind(plane: ControlPlane, name: str, role: str, subjects: list[JsonObject]) -> None:
    reference = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role}
    body = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
    await plane.api.create(f"{_RBAC}/clusterrolebindings", body)


async def _put_policies(plane: ControlPlane) -> None:
    """Two VCs with most of the nodes, an operator that is trusted, no rules."""
    cells = {
        vc: {
            "virtualCells": [
                {
                    "leafType": SHAPE.gpu_product,
                    "level": "kubernetes.io/hostname",
                    "cellNumber": number,
                }
            ]
        }
        for vc, number in (("lab", 5), ("default", 4))
    }
    topology = {
        "levels": ["topology.kubernetes.io/rack", "kubernetes.io/hostname"],
        "leafResource": "nvidia.com/gpu",
        "leafTypeLabel": "nvidia.com/gpu.product",
    }
    text = f"nodeTopology: {json.dumps([topology])}\nvirtualClusters: {json.dumps(cells)}\n"
    await put_policy(plane, "rules", "rules: []\n")
    await put_policy(plane, "cluster", text)
    trusted = [f"system:serviceaccount:{OPERATOR_NAMESPACE}:operator"]
    templates = [template for kind in OPERATED for template in kind.identity_templates()]
    identity = f"trustedControllers: {json.dumps(trusted)}\ntemplates: {json.dumps(templates)}\n"
    await put_policy(plane, "identity", identity)
