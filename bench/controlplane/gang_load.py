"""Gangs of 4 x 8 leaf cells, and control planes that schedule them in one of five ways.

- `cellgate`: planned gangs, through our kube-scheduler.
- `stock`: kube-scheduler with its defaults, without gangs; it scores a sample of the nodes.
- `packed`: kube-scheduler as GPU clusters configure it: it fills nodes up and scores all of them.
- `native`: kube-scheduler with the gangs of Kubernetes.
- `unheld`: as `cellgate`, but each member is bound as soon as kube-scheduler asks for it.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from kube import marks
from state.embedded import EmbeddedPostgres
from tests.controlplane.api import JsonObject
from tests.controlplane.binaries import find_or_build
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.nodes import RACK_LABEL, NodeShape
from tests.controlplane.processes import ChildProcess
from tests.support.installed.extender_only import ExtenderOnly
from tests.support.kube.pods import PodBuilder, a_new_pod

WAYS = ("stock", "packed", "native", "cellgate")
UNHELD = "unheld"
NODES_PER_RACK = 16
GANG_SIZE = 4
PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
_PACKING: JsonObject = {
    "percentageOfNodesToScore": 100,
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "nvidia.com/gpu", "weight": 1}],
                }
            },
        }
    ],
}


def cluster_document(nodes: int) -> JsonObject:
    """Cells of racks and nodes, all of them promised to one VC."""
    return {
        "apiVersion": "cellgate.io/v1",
        "kind": "Cluster",
        "nodeTopology": [
            {
                "levels": [RACK_LABEL, "kubernetes.io/hostname"],
                "leafResource": "nvidia.com/gpu",
                "leafTypeLabel": "nvidia.com/gpu.product",
            }
        ],
        "virtualClusters": {
            "default": {
                "virtualCells": [
                    {
                        "leafType": NodeShape().gpu_product,
                        "level": RACK_LABEL,
                        "cellNumber": nodes // NODES_PER_RACK,
                    }
                ]
            }
        },
    }


class GangLoad:
    """Pods as each way of scheduling wants them."""

    def __init__(self, way: str) -> None:
        self._way = way

    def gang(self, name: str, *, size: int = GANG_SIZE) -> list[PodBuilder]:
        """The members of one gang."""
        return [self._member(name, index, size=size) for index in range(size)]

    def _member(self, gang: str, index: int, *, size: int) -> PodBuilder:
        pod = a_new_pod(f"{gang}-{index}").with_gpus(8).in_gang(gang, size=size).ending_at_once()
        if self._way in ("cellgate", UNHELD):
            return pod.with_spec(schedulerName=marks.SCHEDULER_NAME).gated()
        pod = pod.with_spec(schedulerName="default-scheduler")
        return pod.in_native_gang(gang) if self._way == "native" else pod

    def group(self, name: str) -> JsonObject | None:
        """The object that makes it a gang, where one is needed."""
        if self._way != "native":
            return None
        policy = {"gang": {"minCount": GANG_SIZE}}
        return {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy}}


@asynccontextmanager
async def scheduled_plane(
    way: str, nodes: int
) -> AsyncIterator[tuple[ControlPlane, dict[str, ChildProcess]]]:
    """A control plane with one way of scheduling, and the processes whose CPU counts."""
    gate = "--feature-gates=GenericWorkload=true"
    native = way == "native"
    options = ControlPlaneOptions(
        scheduler=False,
        apiserver_flags=(gate, "--runtime-config=scheduling.k8s.io/v1beta1=true") if native else (),
    )
    async with ControlPlane(find_or_build(), options) as plane:
        await plane.add_nodes(nodes, NodeShape(nodes_per_rack=NODES_PER_RACK))
        server = plane.processes.named("kube-apiserver")
        if way not in ("cellgate", UNHELD):
            profile = {
                "schedulerName": "default-scheduler",
                **(_PACKING if way == "packed" else {}),
            }
            config = {"profiles": [profile]}
            scheduler = plane.start_scheduler(config, *((gate,) if native else ()))
            yield plane, {"scheduler": scheduler, "API server": server}
            return
        async with (
            EmbeddedPostgres(plane.directory / "database") as database,
            aiohttp.ClientSession() as http,
        ):
            extender_only = ExtenderOnly(plane, http, database_url=database.url)
            if way == UNHELD:
                extender_only.program = (sys.executable, "-m", "bench.controlplane.unheld_extender")
            await extender_only.start(cluster_document(nodes))
            used = {"scheduler": extender_only.scheduler, "extender": extender_only.extender}
            yield plane, {**used, "API server": server}
