"""The extender over HTTP: filter, refused pods asked about again, start-up, memory.

The API server is a simulated one, the log keeps nothing; the extender is a process of its own, and
so is the do-nothing extender that it is compared with. All node names are in every request, and one
connection is kept, as kube-scheduler does it.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import mean
from typing import Any

import orjson
import yaml

from bench.processes import Measured
from bench.report import Result, percentile
from kube import marks
from kube.placement_annotations import placement_annotations
from policy.placement import Placement
from policy.submission import NodeName
from policy.topology import CellTypeName, ChainName
from simulation.cluster import SimulatedCluster
from simulation.objects.resources import PODS

_RACK = 25
_FILTER = "/v1/extender/filter"
_LEAVES = 8


def measure(*, is_quick: bool) -> list[Result]:
    """Measure on clusters of growing size."""
    return asyncio.run(_measure(is_quick=is_quick))


async def _measure(*, is_quick: bool) -> list[Result]:
    results: list[Result] = []
    for nodes in (1000,) if is_quick else (1000, 5000):
        async with _cluster(nodes, pods=0) as start:
            rounds = 2 if is_quick else 5
            results += await asyncio.to_thread(_measure_filter, start, nodes, rounds)
    async with _cluster(1000, pods=1000) as start:
        results += await asyncio.to_thread(_measure_refusals, start, 4 if is_quick else 20)
    for nodes, pods in ((1000, 4000),) if is_quick else ((5000, 5000), (5000, 20_000)):
        async with _cluster(nodes, pods=pods) as start:
            results += await asyncio.to_thread(_measure_start, start, nodes, pods)
    return results


@asynccontextmanager
async def _cluster(nodes: int, *, pods: int) -> AsyncIterator[Callable[[], Measured]]:
    """How to start an extender beside a cluster on which so many pods use all leaf cells."""
    cluster = SimulatedCluster(nodes=nodes, racks=nodes // _RACK)
    for pod in range(pods):
        cluster.store.create(PODS, _running_pod(pod, nodes=nodes, pods=pods))
    await cluster.serve()
    with tempfile.TemporaryDirectory() as directory:
        files = _save(cluster, Path(directory), nodes=nodes)
        yield lambda: Measured("bench.services.lone_extender", *files)
    await cluster.close()


def _save(cluster: SimulatedCluster, directory: Path, *, nodes: int) -> tuple[str, str]:
    """Write what an extender is started with: how to reach the cluster, and its cells."""
    kubeconfig, cells = directory / "kubeconfig", directory / "cluster.yaml"
    cluster.save_kubeconfig(kubeconfig)
    cells.write_text(_cluster_text(nodes))
    return str(kubeconfig), str(cells)


def _measure_filter(start: Callable[[], Measured], nodes: int, rounds: int) -> list[Result]:
    """Pods of one to eight leaf cells come, one by one, and find their node.

    The best round counts: what else the machine does only ever adds time.
    """
    times: dict[str, list[list[float]]] = {"cellgate": [], "do-nothing": []}
    with start() as cellgate, Measured("bench.services.do_nothing") as nothing:
        for round_ in range(rounds):
            for name, process in (("cellgate", cellgate), ("do-nothing", nothing)):
                process.first_answer(_FILTER, _question("warm-up", nodes))
                questions = [_question(f"pod-{round_}-{index}", nodes) for index in range(300)]
                times[name].append(_times(process, questions))
    return [
        Result(
            case={"nodes": nodes, "extender": name},
            metric=f"filter_p{percent}_ms",
            value=min(percentile(one, percent) for one in measured),
        )
        for name, measured in times.items()
        for percent in (50, 99)
    ]


def _measure_refusals(start: Callable[[], Measured], rounds: int) -> list[Result]:
    """500 pods that find no room are asked about again and again."""
    questions = [_question(f"pod-{index}", 1000) for index in range(500)]
    used: dict[str, list[float]] = {"cellgate": [], "do-nothing": []}
    with start() as cellgate, Measured("bench.services.do_nothing") as nothing:
        for process in (cellgate, nothing):
            process.first_answer(_FILTER, questions[0])
            _times(process, questions)
        for _ in range(rounds):
            for name, process in (("cellgate", cellgate), ("do-nothing", nothing)):
                before = process.cpu_seconds
                _times(process, questions)
                used[name].append((process.cpu_seconds - before) / len(questions) * 1000)
    return [
        Result(case={"nodes": 1000, "extender": name}, metric="refusal_cpu_ms", value=mean(cpu))
        for name, cpu in used.items()
    ]


def _measure_start(start: Callable[[], Measured], nodes: int, pods: int) -> list[Result]:
    """From nothing to the first correct answer: that a full cluster is full."""
    question = _question("first", nodes)
    case: dict[str, int | str] = {"nodes": nodes, "pods": pods}
    with start() as cellgate:
        seconds = cellgate.first_answer(_FILTER, question)
        used = cellgate.cpu_seconds
        answer = orjson.loads(cellgate.post(_FILTER, question))
        assert answer["NodeNames"] == [], answer
        return [
            Result(case=case, metric="start_s", value=seconds),
            Result(case=case, metric="start_cpu_s", value=used),
            Result(case=case, metric="memory_mb", value=cellgate.memory_mb),
            Result(case=case, metric="peak_memory_mb", value=cellgate.peak_memory_mb),
        ]


def _times(process: Measured, questions: list[bytes]) -> list[float]:
    times = []
    for question in questions:
        began = time.perf_counter()
        process.post(_FILTER, question)
        times.append((time.perf_counter() - began) * 1000)
    return times


def _names(nodes: int) -> list[str]:
    return [f"node-{index:02}" for index in range(nodes)]


def _question(name: str, nodes: int) -> bytes:
    size = 1 + sum(map(ord, name)) % _LEAVES
    body = {"Pod": _pod(name, leaves=size), "Nodes": None, "NodeNames": _names(nodes)}
    return orjson.dumps(body)


def _pod(name: str, *, leaves: int) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": str(leaves), "cpu": "8", "memory": "64Gi"}}
    return {
        "metadata": {
            "name": name,
            "namespace": "lab",
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "labels": {marks.VC_LABEL: "a", "app": "train"},
            "annotations": {},
        },
        "spec": {
            "schedulerName": marks.SCHEDULER_NAME,
            "priorityClassName": "test",
            "containers": [{"name": "main", "image": "train:1", "resources": resources}],
        },
        "status": {"phase": "Pending"},
    }


def _running_pod(index: int, *, nodes: int, pods: int) -> dict[str, Any]:
    """Every node has the same number of pods, which use all of its leaf cells."""
    per_node = pods // nodes
    leaves = _LEAVES // per_node
    place, node = index % per_node, NodeName(_names(nodes)[index // per_node])
    pod = _pod(f"running-{index}", leaves=leaves)
    placement = Placement(
        node=node,
        leaf_cells=tuple(range(place * leaves, (place + 1) * leaves)),
        vc_cell_type=CellTypeName("node"),
        chain=ChainName("rack"),
    )
    pod["metadata"]["annotations"] = placement_annotations(placement)
    pod["spec"]["nodeName"] = node
    pod["status"] = {"phase": "Running"}
    return pod


def _cluster_text(nodes: int) -> str:
    """HiveD's configuration: racks of nodes with two sockets; all nodes are promised to VC a."""
    names = _names(nodes)
    cells = [
        {
            "cellType": "rack",
            "cellChildren": [{"cellAddress": name} for name in names[first : first + _RACK]],
        }
        for first in range(0, nodes, _RACK)
    ]
    types = {
        "rack": {"childCellType": "node", "childCellNumber": _RACK},
        "node": {"childCellType": "socket", "childCellNumber": 2, "isNodeLevel": True},
        "socket": {"childCellType": "A100", "childCellNumber": 4},
    }
    promised = [{"cellType": "rack.node", "cellNumber": nodes}]
    return yaml.safe_dump(
        {
            "physicalCluster": {"cellTypes": types, "physicalCells": cells},
            "virtualClusters": {"a": {"virtualCells": promised}},
        }
    )
