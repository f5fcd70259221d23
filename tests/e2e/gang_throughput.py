"""How fast gangs start through a real kube-scheduler: `python -m tests.e2e.gang_throughput`.

Gangs of 4 x 8 leaf cells in racks of 16 nodes are created at once; measured from the first creation
until the last pod is bound. Rows of one run can be compared, runs cannot: machines are noisy.

- `cellgate`: planned gangs, through our kube-scheduler.
- `stock`: kube-scheduler as it comes, without gangs; it looks at a sample of the nodes.
- `packed`: the same as clusters of GPUs run it: nodes are filled up, and all of them looked at.
- `native`: kube-scheduler's own gangs.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median

import aiohttp

from kube import marks
from kube.api.client import connect
from state.embedded import EmbeddedPostgres
from tests.controlplane.api import JsonObject
from tests.controlplane.binaries import find_or_build
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.nodes import RACK_LABEL, NodeShape
from tests.controlplane.processes import ChildProcess
from tests.e2e.beside import Beside
from tests.e2e.gangs import a_member

NODES_PER_RACK = 16
GANG_SIZE = 4
PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
_AT_ONCE = 64
_PATIENCE_SECONDS = 900
_HAVE_A_NODE = {"fieldSelector": "spec.nodeName!="}
_TICKS = os.sysconf("SC_CLK_TCK")
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


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one way of scheduling did with the load."""

    seconds: float
    pods: int
    unbound: int
    racks: float
    cpu: Mapping[str, float]
    """Seconds of CPU by process."""
    lone_ms: float
    """One more gang on the idle cluster, created to all bound, p50."""

    def show(self, name: str) -> str:
        per_pod = " / ".join(
            f"{who} {1000 * spent / self.pods:.1f}" for who, spent in self.cpu.items()
        )
        return (
            f"{name:10} {self.pods / self.seconds:7.1f} pods/s  racks {self.racks:4.2f}  "
            f"unbound {self.unbound}  lone gang {self.lone_ms:6.0f} ms  CPU ms/pod {per_pod}"
        )


def cpu_seconds(process: ChildProcess) -> float:
    """What a process has used so far."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


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


class Load:
    """Pods as each way of scheduling wants them."""

    def __init__(self, way: str) -> None:
        self._way = way

    def gang(self, name: str, *, size: int = GANG_SIZE) -> list[JsonObject]:
        """The members of one gang."""
        pods = [a_member(name, index, size=size, gpus=8, is_gated=True) for index in range(size)]
        for pod in pods:
            del pod["spec"]["priorityClassName"]
            pod["spec"]["schedulerName"] = (
                marks.SCHEDULER_NAME if self._way == "cellgate" else "default-scheduler"
            )
            if self._way != "cellgate":
                del pod["spec"]["schedulingGates"]
            if self._way == "native":
                pod["spec"]["schedulingGroup"] = {"podGroupName": name}
        return pods

    def group(self, name: str) -> JsonObject | None:
        """The object that makes it a gang, where one is needed."""
        if self._way != "native":
            return None
        policy = {"gang": {"minCount": GANG_SIZE}}
        return {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy}}


@asynccontextmanager
async def a_plane(
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
        if way != "cellgate":
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
            beside = Beside(plane, http, database_url=database.url)
            await beside.start(cluster_document(nodes))
            used = {"scheduler": beside.scheduler, "extender": beside.extender}
            yield plane, {**used, "API server": server}


class Bound:
    """Follows the pods that have a node by a watch: whatever else it hears, it would cost, too."""

    def __init__(self, plane: ControlPlane) -> None:
        self._kubeconfig = plane.kubeconfig()
        self.nodes: dict[str, str] = {}
        self._changed = asyncio.Event()

    async def follow(self) -> None:
        """Note every pod that gets a node, until cancelled."""
        async with connect(str(self._kubeconfig)) as client:
            while True:  # without a version each stream begins with all that is there
                async for event in client.watch(
                    PODS, query=_HAVE_A_NODE, idle_seconds=_PATIENCE_SECONDS
                ):
                    self._note(event["object"])

    def _note(self, pod: JsonObject) -> None:
        node = pod.get("spec", {}).get("nodeName")
        if node and pod["metadata"]["name"] not in self.nodes:
            self.nodes[pod["metadata"]["name"]] = node
            self._changed.set()

    async def wait(self, is_done: Callable[[], bool]) -> bool:
        """Wait until it is so; False if nothing happened for long."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not is_done():
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), 30)
            except TimeoutError:
                return is_done()
            if time.monotonic() > deadline:
                return False
        return True


async def measure(way: str, *, nodes: int, gangs: int) -> Outcome:
    """Start a control plane, put the load on it, and count."""
    async with a_plane(way, nodes) as (plane, processes):
        load, bound = Load(way), Bound(plane)
        following = asyncio.create_task(bound.follow())
        await asyncio.sleep(2)
        lone = [await _one(plane, load, bound, f"lone{number}") for number in range(5)]
        names = [f"gang{number}" for number in range(gangs)]
        before = {who: cpu_seconds(process) for who, process in processes.items()}
        pods = gangs * GANG_SIZE
        began = time.monotonic()
        await _create(plane, load, names)
        await bound.wait(lambda: _count(bound, "gang") >= pods)
        seconds = time.monotonic() - began
        cpu = {who: cpu_seconds(process) - before[who] for who, process in processes.items()}
        following.cancel()
        return Outcome(
            seconds=seconds,
            pods=pods,
            unbound=pods - _count(bound, "gang"),
            racks=_racks(bound, names),
            cpu=cpu,
            lone_ms=1000 * median(lone),
        )


async def _one(plane: ControlPlane, load: Load, bound: Bound, name: str) -> float:
    """One gang on the idle cluster; it is gone when the next begins."""
    began = time.monotonic()
    await _create(plane, load, [name])
    await bound.wait(lambda: _count(bound, name + "-") >= GANG_SIZE)
    seconds = time.monotonic() - began
    for index in range(GANG_SIZE):
        await plane.api.delete(f"{PODS}/{name}-{index}", gracePeriodSeconds="0")
    await asyncio.sleep(0.5)
    return seconds


async def _create(plane: ControlPlane, load: Load, names: list[str]) -> None:
    hands = asyncio.Semaphore(_AT_ONCE)

    async def create(path: str, body: JsonObject) -> None:
        async with hands:
            await plane.api.create(path, body)

    groups = [(GROUPS, group) for name in names if (group := load.group(name))]
    await asyncio.gather(*(create(*one) for one in groups))
    await asyncio.gather(*(create(PODS, pod) for name in names for pod in load.gang(name)))


def _count(bound: Bound, prefix: str) -> int:
    return sum(name.startswith(prefix) for name in bound.nodes)


def _racks(bound: Bound, names: list[str]) -> float:
    """How many racks a gang lies in, on average."""
    spans = []
    for name in names:
        nodes = [bound.nodes.get(f"{name}-{index}") for index in range(GANG_SIZE)]
        spans.append(len({int(node.split("-")[1]) // NODES_PER_RACK for node in nodes if node}))
    return sum(spans) / len(spans)


async def main(arguments: argparse.Namespace) -> None:
    """Measure each way in turn, and print a table."""
    gangs = arguments.gangs or arguments.nodes * 8 // 10 // GANG_SIZE
    print(f"{arguments.nodes} nodes, {gangs} gangs of {GANG_SIZE} x 8", flush=True)
    for way in arguments.ways:
        outcome = await measure(way, nodes=arguments.nodes, gangs=gangs)
        print(outcome.show(way), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=992)
    parser.add_argument("--gangs", type=int, default=0, help="default: 80 %% of the cluster")
    parser.add_argument("ways", nargs="*", default=["stock", "packed", "native", "cellgate"])
    sys.exit(asyncio.run(main(parser.parse_args())))
