"""Policies, pods and Jobs for the end-to-end tests, in one line each."""

import json
import secrets
from typing import Any

from tests.controlplane.api import ApiError, JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import NodeShape
from tests.controlplane.waiting import poll_until
from tests.support.installed.installation import NAMESPACE
from tests.support.kube.config_maps import a_policy_map
from tests.support.kube.objects import ObjectBuilder
from tests.support.kube.pods import a_new_pod
from tests.support.kube.workloads import a_template, a_workload
from tests.support.policy.documents import HEAD

CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
SHAPES = """
allowed: {hostPaths: [/scratch]}
shapes:
- name: train
  namespace: .
  labels: {purpose: train}
  nodeSelector: {kubernetes.io/os: linux}
  tolerations: [{key: train, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]
  requests: {cpu: 100m}
  fixedRequests: {memory: 64Mi}
  mounts:
  - {path: /mnt, persistentVolumeClaim: work, subPath: "home/{user}"}
  - {path: /dev/shm, memory: 1Gi}
  - {path: /etc/site, configMap: site, readOnly: true}
  - {path: /scratch, hostPath: /scratch}
  imagePullSecrets: [hub]
  maxRunSeconds: 3600
  ignoresDisruptions: true
"""


async def delete_policy(plane: ControlPlane, kind: str) -> None:
    """Take a policy document away, if it is there."""
    if await plane.api.exists(f"{CONFIG_MAPS}/cellgate-{kind}"):
        await plane.api.delete(f"{CONFIG_MAPS}/cellgate-{kind}")


def policy_of_admin(kind: str, text: str) -> JsonObject:
    """The ConfigMap of a policy document, as an admin writes it."""
    policy = a_policy_map(kind, f"{HEAD}{kind.capitalize()}\n{text}", name=f"cellgate-{kind}")
    for key in ("namespace", "uid", "resourceVersion"):
        del policy["metadata"][key]
    return policy


async def put_policy(plane: ControlPlane, kind: str, text: str) -> None:
    """Create or replace a policy document."""
    await delete_policy(plane, kind)
    await plane.api.create(CONFIG_MAPS, policy_of_admin(kind, text))


async def promise_nodes(plane: ControlPlane, count: int, *, more: str = "") -> None:
    """Derive the cells from the nodes, and promise the default VC so many of them."""
    text = f"""
{more}
nodeTopology:
- levels: [kubernetes.io/hostname]
  leafResource: nvidia.com/gpu
  leafTypeLabel: nvidia.com/gpu.product
virtualClusters:
  default:
    virtualCells:
    - leafType: {NodeShape().gpu_product}
      level: kubernetes.io/hostname
      cellNumber: {count}
"""
    if await plane.api.exists(f"{CONFIG_MAPS}/cellgate-cluster"):
        data = policy_of_admin("cluster", text)["data"]  # it is not deleted while gangs run
        await plane.api.patch(f"{CONFIG_MAPS}/cellgate-cluster", {"data": data})
    else:
        await put_policy(plane, "cluster", text)


async def put_rules(plane: ControlPlane, namespace: str, rules: list[dict[str, Any]]) -> None:
    """Put rules in force, and wait until they are: the first one is for a marker only."""
    note = f"table {secrets.token_hex(4)}"
    table = [{"user": "^marker$", "then": "fail", "note": note}, *rules]
    await put_policy(plane, "rules", f"rules: {json.dumps(table)}")

    async def is_in_force() -> bool:
        try:
            await create_pod(plane, namespace, "marker", user="marker", dryRun="All")
        except ApiError as error:
            return note in str(error)
        return False

    await poll_until(is_in_force, deadline_seconds=10, explain=lambda: "rules are not in force")


async def create_pod(
    plane: ControlPlane,
    namespace: str,
    name: str,
    *,
    user: str = "alice",
    gpus: int = 1,
    class_name: str = "",
    metadata: JsonObject | None = None,
    spec: JsonObject | None = None,
    **params: str,
) -> JsonObject:
    """Create a pod as a user, with these fields of its metadata and its spec."""
    pod = a_new_pod(name).with_gpus(gpus).ending_at_once()
    pod = pod.of_class(class_name) if class_name else pod
    pod = pod.with_metadata(**(metadata or {})).with_spec(**(spec or {}))
    path = f"/api/v1/namespaces/{namespace}/pods"
    return await plane.api_as(user).create(path, pod, **params)


def a_job(name: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> ObjectBuilder:
    """A Job of class prod whose pods ask for one device each."""
    pod = a_new_pod("unused").with_gpus(1).of_class("prod").with_spec(restartPolicy="Never")
    template = a_template(pod.with_metadata(annotations=annotations or {}))
    return a_workload("Job", name, template=template, namespace=None, **spec)


async def pods_of(
    plane: ControlPlane, namespace: str, selector: str, *, count: int = 1
) -> list[JsonObject]:
    """The pods of a workload, once there are so many."""
    found: list[JsonObject] = []

    async def look() -> bool:
        nonlocal found
        found = await plane.api.list(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)
        return len(found) >= count

    await poll_until(
        look, deadline_seconds=30, explain=lambda: f"{len(found)} pods have {selector}: {found}"
    )
    return found
