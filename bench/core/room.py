"""What planning with CPU and memory costs, beside planning with leaf cells alone.

5,000 nodes with 20 pods each that have no leaf cells; six of seven nodes are used by gangs. A gang
is planned as the planner does it: as if nodes lacked nothing, with room counted and enough of it
everywhere, and with enough of it in one rack of ten. Also: what a pod that comes and goes costs
while needs wait, and the memory of it all.
"""

import gc
import time
import tracemalloc
from collections.abc import Iterator
from random import Random
from typing import Final

from bench.core.clusters import LEAVES, RACK, node_names
from bench.report import SEED, Result, percentile
from extender.cells.engine import Engine
from extender.cells.model import MemberRequest, NodeCell, PlacedMember
from extender.queue.member_places import decide_unplaced, unplaced
from extender.queue.model import QueuedPod
from extender.queue.ports import Nodes
from extender.queue.queued_gang import QueuedGang
from extender.queue.room_search import RoomSearch
from extender.room.cluster_room import ClusterRoom
from extender.room.fitting_nodes import FittingNodes, Need
from kube.read.node_choice import NodeTraits, NodeWish
from policy.placement import Placement
from policy.pod_resources import NodePod, PodResources
from policy.submission import GangKey, NodeName, PodUid
from tests.support.queue.engine_cells import EngineCells
from tests.support.queue.unlimited_nodes import UnlimitedNodes

_NODES: Final = 5000
_FILLED: Final = 0.85
_PODS_PER_NODE: Final = 20
_CPUS: Final = 128_000
_NEEDS: Final = 32
_SHAPES: Final = {"4x8": 4, "16x8": 16}
_MICRO: Final = 1000


def measure(*, is_quick: bool) -> list[Result]:
    """Time decisions and events."""
    repeat = 60 if is_quick else 400
    return [*_measure_decisions(repeat), *_measure_events(repeat * 10), _measure_memory()]


def _measure_decisions(repeat: int) -> Iterator[Result]:
    cells = EngineCells(_filled(), ())
    worlds: dict[str, Nodes] = {
        "unknown": UnlimitedNodes(node_names(_NODES)),
        "everywhere": _room(scarce=False),
        "one rack in ten": _room(scarce=True),
    }
    gc.collect()
    gc.freeze()
    for shape, size in _SHAPES.items():
        times: dict[str, list[float]] = {name: [] for name in worlds}
        for _ in range(repeat):  # alternating: other load on the machine is the same for all
            for name, nodes in worlds.items():
                times[name].append(_decide(cells, nodes, size))
        for name, values in times.items():
            case: dict[str, int | str] = {"nodes": _NODES, "gang": shape, "room": name}
            yield Result(case=case, metric="decide_p50_us", value=percentile(values, 50))
            yield Result(case=case, metric="decide_p99_us", value=percentile(values, 99))
            rate = 1e6 / percentile(values, 50)
            yield Result(case=case, metric="decisions_per_s", value=rate)
    gc.unfreeze()


def _decide(cells: EngineCells, nodes: Nodes, size: int) -> float:
    gang = QueuedGang(GangKey("bench", "gang"))
    for index in range(size):
        gang.put(_member(index, size))
    began = time.process_time_ns()
    search = RoomSearch(gang, unplaced(gang, cells), cells=cells, nodes=nodes, now=0.0)
    decisions = decide_unplaced(gang, cells, search, now=0.0)
    took = (time.process_time_ns() - began) / _MICRO
    assert len(decisions) == size, decisions
    for pod in gang.pods:
        cells.forget_member(pod)
    return took


def _member(index: int, size: int) -> QueuedPod:
    request = MemberRequest(
        member=PodUid(f"member-{index}"),
        gang=GangKey("bench", "gang"),
        leaf_count=LEAVES,
        gang_leaf_counts=(LEAVES,) * size,
    )
    return QueuedPod(request=request, gang_size=size, is_gated=True, node_wish=_need(64_000))


def _need(cpu: int) -> Need:
    return Need(NodeWish(), PodResources(amounts=(("cpu", cpu),)))


def _filled() -> Engine:
    engine = Engine(lease_seconds=3600)
    for name in node_names(_NODES):
        engine.observe_node(NodeCell(name=name, leaf_type=None, leaf_count=LEAVES))
    for name in Random(SEED).sample(node_names(_NODES), int(_NODES * _FILLED)):
        request = MemberRequest(
            member=PodUid(f"{name}-0"),
            gang=GangKey("bench", name),
            leaf_count=LEAVES,
            gang_leaf_counts=(LEAVES,),
        )
        placement = Placement(node=name, leaf_cells=tuple(range(LEAVES)))
        engine.observe_bound(PlacedMember(request=request, placement=placement))
    return engine


def _room(*, scarce: bool) -> FittingNodes:
    """All nodes, and their pods; if CPU is scarce, only each tenth rack has 64 CPUs left."""
    nodes = FittingNodes(ClusterRoom())
    for index, name in enumerate(node_names(_NODES)):
        nodes.upsert(name, NodeTraits(name=name, labels={}), {"cpu": _CPUS, "pods": 110})
        is_full = scarce and index // RACK % 10
        for number in range(_PODS_PER_NODE):
            pod = NodePod(resources=PodResources(amounts=(("cpu", 5000 if is_full else 1000),)))
            nodes.room.see(PodUid(f"{name}-{number}-0123456789abcdef0123"), pod, node=name)
    nodes.fitting([_need(64_000)], without=())
    return nodes


def _measure_events(repeat: int) -> Iterator[Result]:
    """A pod appears on a node and ends, while gangs with many different needs wait."""
    nodes, pod = _room(scarce=True), NodePod(resources=PodResources(amounts=(("cpu", 1000),)))
    needs = [_need(64_000 + cpu) for cpu in range(_NEEDS)]
    for need in needs:
        nodes.fitting([need], without=())
    times = []
    for index in range(repeat):
        began = time.process_time_ns()
        name = NodeName(f"node-{index * 7 % _NODES:05}")
        nodes.room.see(PodUid("web"), pod, node=name)
        nodes.take_grown()
        nodes.room.lose(PodUid("web"))
        nodes.take_grown()
        times.append((time.process_time_ns() - began) / _MICRO / 2)
    case: dict[str, int | str] = {"nodes": _NODES, "needs": _NEEDS}
    yield Result(case=case, metric="event_p50_us", value=percentile(times, 50))


def _measure_memory() -> Result:
    tracemalloc.start()
    nodes = _room(scarce=False)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del nodes
    case: dict[str, int | str] = {"nodes": _NODES, "pods": _NODES * _PODS_PER_NODE}
    return Result(case=case, metric="memory_mb", value=size / 2**20)
