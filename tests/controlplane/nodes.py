"""Fake GPU nodes, made by a rule that a test can state in one line.

Nodes fill racks and racks fill zones in order of their number: with four nodes per rack,
node 0 to 3 are in rack-0. They are born Ready, so a pod can be bound to them at once.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field

from tests.controlplane.api import Api, JsonObject

ZONE_LABEL = "topology.kubernetes.io/zone"
RACK_LABEL = "topology.kubernetes.io/rack"
HOSTNAME_LABEL = "kubernetes.io/hostname"
PRODUCT_LABEL = "nvidia.com/gpu.product"
COUNT_LABEL = "nvidia.com/gpu.count"
GPU_RESOURCE = "nvidia.com/gpu"

_PARALLEL_REQUESTS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    """What each node of a batch has, and how the batch is laid out."""

    gpus: int = 8
    gpu_product: str = "NVIDIA-A100-SXM4-80GB"
    nodes_per_rack: int = 4
    racks_per_zone: int = 2
    cpu: str = "128"
    memory: str = "1Ti"
    pods: str = "110"
    labels: dict[str, str] = field(default_factory=dict)


def build_node(number: int, shape: NodeShape, *, prefix: str = "node") -> JsonObject:
    """Build the node of that number."""
    name = f"{prefix}-{number}"
    resources = _build_resources(shape)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": _build_labels(name, number, shape)},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "FakeNode"}],
            "addresses": [{"type": "Hostname", "address": name}],
        },
    }


def _build_labels(name: str, number: int, shape: NodeShape) -> dict[str, str]:
    rack = number // shape.nodes_per_rack
    gpu_labels = {PRODUCT_LABEL: shape.gpu_product, COUNT_LABEL: str(shape.gpus)}
    return {
        HOSTNAME_LABEL: name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        ZONE_LABEL: f"zone-{rack // shape.racks_per_zone}",
        RACK_LABEL: f"rack-{rack}",
        **(gpu_labels if shape.gpus else {}),
        **shape.labels,
    }


def _build_resources(shape: NodeShape) -> dict[str, str]:
    resources = {"cpu": shape.cpu, "memory": shape.memory, "pods": shape.pods}
    return {**resources, GPU_RESOURCE: str(shape.gpus)} if shape.gpus else resources


async def create_nodes(api: Api, built: Iterable[JsonObject]) -> None:
    """Create nodes side by side: a thousand take two seconds."""
    await _in_parallel(api.create("/api/v1/nodes", node) for node in built)


async def delete_nodes(api: Api, names: Iterable[str]) -> None:
    """Delete nodes side by side."""
    await _in_parallel(api.delete(f"/api/v1/nodes/{name}") for name in names)


async def _in_parallel(requests: Iterable[Coroutine[None, None, JsonObject]]) -> None:
    turn = asyncio.Semaphore(_PARALLEL_REQUESTS)

    async def take_turn(request: Coroutine[None, None, JsonObject]) -> None:
        async with turn:
            await request

    async with asyncio.TaskGroup() as group:
        for request in requests:
            group.create_task(take_turn(request))
