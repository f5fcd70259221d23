"""Pods per second through a real kube-scheduler.

`python -m bench.controlplane.pod_throughput [NODES] [PODS]` schedules pods without gates on one
control plane, first with an extender that does nothing, then with ours. On a machine with other
work the numbers say little.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from functools import partial

import aiohttp
import yaml

from kube import marks
from state.embedded import EmbeddedPostgres
from tests.controlplane.api import JsonObject
from tests.controlplane.binaries import find_or_build
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.nodes import NodeShape
from tests.controlplane.ports import free_ports
from tests.controlplane.processes import ChildProcess
from tests.controlplane.waiting import poll_until
from tests.support.installed.extender_only import ExtenderOnly
from tests.support.kube.pods import PodBuilder, a_new_pod

PODS = "/api/v1/namespaces/default/pods"
_IN_PARALLEL = 32
_ROUNDS = 2


def _cluster(nodes: int) -> JsonObject:
    rack = 25
    return {
        "physicalCluster": {
            "cellTypes": {
                "rack": {"childCellType": "node", "childCellNumber": rack},
                "node": {"childCellType": "A100", "childCellNumber": 8, "isNodeLevel": True},
            },
            "physicalCells": [
                {
                    "cellType": "rack",
                    "cellChildren": [{"cellAddress": f"node-{first + i}"} for i in range(rack)],
                }
                for first in range(0, nodes, rack)
            ],
        },
        "virtualClusters": {
            "default": {"virtualCells": [{"cellType": "rack.node", "cellNumber": nodes}]}
        },
    }


def _pod(name: str) -> PodBuilder:
    pod = a_new_pod(name).with_gpus(8).with_spec(schedulerName=marks.SCHEDULER_NAME)
    return pod.ending_at_once()


async def _measure(plane: ControlPlane, count: int, start: Callable[[], ChildProcess]) -> float:
    """Let a kube-scheduler find pods that wait; pods per second until all are bound."""
    names = [f"pod-{index}" for index in range(count)]
    for first in range(0, count, _IN_PARALLEL):
        some = names[first : first + _IN_PARALLEL]
        await asyncio.gather(*(plane.api.create(PODS, _pod(name)) for name in some))
    scheduler = start()
    seen: list[tuple[float, int]] = []

    async def are_all_bound() -> bool:
        pods = await plane.api.list(PODS)
        seen.append((time.monotonic(), sum("nodeName" in pod["spec"] for pod in pods)))
        return seen[-1][1] == count

    await poll_until(
        are_all_bound,
        deadline_seconds=300,
        poll_seconds=0.2,
        explain=lambda: f"{seen[-1][1]} of {count} bound",
    )
    await scheduler.stop()
    await plane.api.delete(PODS, gracePeriodSeconds="0")
    began = next(at for at, bound in seen if bound)
    first = next(bound for _, bound in seen if bound)
    return (count - first) / (seen[-1][0] - began)


async def _main(nodes: int, count: int) -> None:
    options = ControlPlaneOptions(scheduler=False, kwok=False)
    async with (
        ControlPlane(find_or_build(), options) as plane,
        EmbeddedPostgres(plane.directory / "database") as database,
        aiohttp.ClientSession() as http,
    ):
        await plane.add_nodes(nodes, NodeShape(gpus=8))
        extender_only = ExtenderOnly(plane, http, database_url=database.url)
        await extender_only.start(_cluster(nodes))
        await extender_only.scheduler.stop()
        (port,) = free_ports(1)
        plane.spawn("do-nothing", [sys.executable, "-m", "bench.services.do_nothing", str(port)])
        nothing: JsonObject = yaml.safe_load(yaml.safe_dump(extender_only.configuration()))
        nothing["extenders"] = [extender] = nothing["extenders"][:1]  # kube-scheduler binds
        extender["urlPrefix"] = f"http://127.0.0.1:{port}/v1/extender"
        del extender["preemptVerb"]
        configurations = {"do-nothing": nothing, "cellgate": extender_only.configuration()}
        for number in range(_ROUNDS):
            for name, configuration in configurations.items():
                start = partial(
                    plane.start_scheduler, configuration, name=f"scheduler-{name}-{number}"
                )
                rate = await _measure(plane, count, start)
                print(f"{nodes} nodes, {name}: {rate:.1f} pods/s", flush=True)


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    asyncio.run(_main(*(numbers + [1000, 500][len(numbers) :])))
