"""What a member of a large gang costs: no more than one of a small gang.

A gang of 1,000 to 4,000 members with one leaf cell each lives through the planner and the engine:
it is seen and placed, it is bound, it is recovered after a restart, it ends. CPU time for each
member.
"""

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from bench.core.clusters import LEAVES, build_topology, node_names
from bench.report import Result
from extender.cells.engine import Engine
from extender.cells.model import MemberRequest, NodeCell, PlacedMember
from extender.cells.views.listings import run_to_end
from extender.queue.gang_planner import GangPlanner
from extender.queue.model import QueuedPod
from policy.placement import Placement
from policy.submission import GangKey, PodUid, VcName
from tests.support.queue.engine_cells import EngineCells
from tests.support.queue.unlimited_nodes import UnlimitedNodes

_NODES: Final = 1000
_SIZES: Final = (1000, 2000, 4000)
_ROUNDS: Final = 3
_MICRO: Final = 1000


def measure(*, is_quick: bool) -> list[Result]:
    """Time each part of the life of gangs of growing size; the best of some rounds."""
    best: dict[tuple[int, str], float] = {}
    for _ in range(1 if is_quick else _ROUNDS):
        for size in _SIZES:
            gc.collect()
            for part, took in _live(size):
                best[size, part] = min(took, best.get((size, part), took))
    return [
        Result(case={"members": size, "part": part}, metric="member_us", value=took)
        for (size, part), took in sorted(best.items())
    ]


def _live(size: int) -> Iterator[tuple[str, float]]:
    engine = _engine()
    planner = GangPlanner(EngineCells(engine, ()), UnlimitedNodes(node_names(_NODES)), _NoCalls())
    pods = [_pod(index, size) for index in range(size)]

    def place() -> None:
        for pod in pods:
            planner.see(pod)
        planner.step(now=0.0)

    def bind() -> None:
        for pod, one in zip(pods, running, strict=True):
            engine.observe_bound(one)
            planner.see(replace(pod, is_gated=False, node=one.placement.node))
        planner.step(now=0.0)

    def recover() -> None:
        run_to_end(fresh.recover_stepwise(running, released=(), now=0.0))

    def end() -> None:
        for pod in pods:
            engine.observe_ending(pod.uid)
            engine.forget_member(pod.uid)
            planner.lose(pod.uid)
        planner.step(now=0.0)

    yield "place", _time(place, size)
    running = [PlacedMember(request=pod.request, placement=_placement(engine, pod)) for pod in pods]
    yield "bind", _time(bind, size)
    fresh = _engine()
    yield "recover", _time(recover, size)
    yield "end", _time(end, size)
    assert engine.gangs() == []


class _NoCalls:
    """No scheduler asks to bind a pod."""

    longest_seconds = 45.0

    def is_open(self, uid: PodUid) -> bool:
        return False


def _time(work: Callable[[], object], size: int) -> float:
    began = time.process_time_ns()
    work()
    return (time.process_time_ns() - began) / _MICRO / size


def _engine() -> Engine:
    engine = Engine(lease_seconds=3600, topology=build_topology(_NODES))
    for name in node_names(_NODES):
        engine.observe_node(NodeCell(name=name, leaf_type=None, leaf_count=LEAVES))
    return engine


def _pod(index: int, size: int) -> QueuedPod:
    request = MemberRequest(
        member=PodUid(f"member-{index:05}"),
        gang=GangKey("bench", "gang"),
        leaf_count=1,
        gang_leaf_counts=(1,) * size,
        vc=VcName("a"),
    )
    return QueuedPod(request=request, gang_size=size, is_gated=True)


def _placement(engine: Engine, pod: QueuedPod) -> Placement:
    placement = engine.placement(pod.uid)
    assert placement is not None
    return placement
