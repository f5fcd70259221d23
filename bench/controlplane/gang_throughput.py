"""Gangs per second through a real kube-scheduler: `python -m bench.controlplane.gang_throughput`.

Gangs of 4 x 8 leaf cells in racks of 16 nodes are created at once, and timed from the first
creation until the last pod is bound, for each way of scheduling (`gang_load`). Compare the rows of
one run; different runs differ, because machines are noisy.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from bench.controlplane.gang_load import (
    GANG_SIZE,
    GROUPS,
    NODES_PER_RACK,
    PODS,
    WAYS,
    GangLoad,
    scheduled_plane,
)
from bench.processes import cpu_seconds
from kube.api.client import connect
from tests.controlplane.api import JsonObject
from tests.controlplane.cluster import ControlPlane

_AT_ONCE = 64
_PATIENCE_SECONDS = 900
_HAVE_A_NODE = {"fieldSelector": "spec.nodeName!="}


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


class Bound:
    """Follows the pods that have a node by a watch that receives no others: each would cost CPU."""

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
    async with scheduled_plane(way, nodes) as (plane, processes):
        load, bound = GangLoad(way), Bound(plane)
        following = asyncio.create_task(bound.follow())
        await asyncio.sleep(2)
        lone = [await _one(plane, load, bound, f"lone{number}") for number in range(5)]
        names = [f"gang{number}" for number in range(gangs)]
        before = {who: cpu_seconds(process.pid) for who, process in processes.items()}
        pods = gangs * GANG_SIZE
        began = time.monotonic()
        await _create(plane, load, names)
        await bound.wait(lambda: _count(bound, "gang") >= pods)
        seconds = time.monotonic() - began
        cpu = {who: cpu_seconds(process.pid) - before[who] for who, process in processes.items()}
        following.cancel()
        return Outcome(
            seconds=seconds,
            pods=pods,
            unbound=pods - _count(bound, "gang"),
            racks=_racks(bound, names),
            cpu=cpu,
            lone_ms=1000 * median(lone),
        )


async def _one(plane: ControlPlane, load: GangLoad, bound: Bound, name: str) -> float:
    """One gang on the idle cluster; it is gone when the next begins."""
    began = time.monotonic()
    await _create(plane, load, [name])
    await bound.wait(lambda: _count(bound, name + "-") >= GANG_SIZE)
    seconds = time.monotonic() - began
    for index in range(GANG_SIZE):
        await plane.api.delete(f"{PODS}/{name}-{index}", gracePeriodSeconds="0")
    await asyncio.sleep(0.5)
    return seconds


async def _create(plane: ControlPlane, load: GangLoad, names: list[str]) -> None:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def create(path: str, body: JsonObject) -> None:
        async with slots:
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
    parser.add_argument("ways", nargs="*", default=WAYS)
    sys.exit(asyncio.run(main(parser.parse_args())))
