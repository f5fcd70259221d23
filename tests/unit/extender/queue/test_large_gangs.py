"""Large gangs: the work for one member does not grow with the number of members."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

from extender.cells.engine import Engine
from extender.cells.model import MemberRequest, PlacedMember
from extender.queue.gang_planner import GangPlanner
from extender.queue.model import QueuedPod
from policy.submission import GangKey, PodUid, VcName
from tests.support.cells.builders import a_cluster, a_node_cell, nodes_of
from tests.support.queue.engine_cells import EngineCells
from tests.support.queue.unlimited_nodes import UnlimitedNodes

SMALL, LARGE = 64, 256


class NoCalls:
    longest_seconds = 45.0

    def is_open(self, uid: PodUid) -> bool:
        return False


@contextmanager
def counted_calls() -> Iterator[Callable[[], int]]:
    """Count calls of Python functions, steps of generators included: they do not vary like time."""
    calls = 0

    def note(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(note)
    try:
        yield lambda: calls
    finally:
        sys.setprofile(None)


def calls_in_a_life(size: int) -> dict[str, float]:
    """Place, bind and end a gang; return the calls for each member."""
    cluster = a_cluster("16 racks x 8 nodes x 8").promising("a", node=128).build()
    engine = Engine(lease_seconds=60, topology=cluster)
    for node in nodes_of(cluster):
        engine.observe_node(a_node_cell(node))
    planner = GangPlanner(EngineCells(engine, ()), UnlimitedNodes(nodes_of(cluster)), NoCalls())
    pods = [a_pod(index, size) for index in range(size)]
    found: dict[str, float] = {}
    with counted_calls() as count:
        for pod in pods:
            planner.see(pod)
        planner.step(now=0.0)
        found["place"] = count() / size
    for pod in pods:
        assert engine.has_place(pod.uid)
    with counted_calls() as count:
        for pod in pods:
            placement = engine.placement(pod.uid)
            assert placement is not None
            engine.observe_bound(PlacedMember(request=pod.request, placement=placement))
            planner.see(replace(pod, is_gated=False, node=placement.node))
        planner.step(now=0.0)
        found["bind"] = count() / size
    with counted_calls() as count:
        for pod in pods:
            engine.observe_ending(pod.uid)
            engine.forget_member(pod.uid)
            planner.lose(pod.uid)
        planner.step(now=0.0)
        found["end"] = count() / size
    assert engine.gangs() == []
    return found


def a_pod(index: int, size: int) -> QueuedPod:
    request = MemberRequest(
        member=PodUid(f"member-{index:05}"),
        gang=GangKey("ns", "gang"),
        leaf_count=1,
        gang_leaf_counts=(1,) * size,
        vc=VcName("a"),
    )
    return QueuedPod(request=request, gang_size=size, is_gated=True)


class NotingCells(EngineCells):
    """Notes which members are forgotten: each is a row of the log."""

    forgotten: tuple[PodUid, ...] = ()

    def forget_member(self, member: PodUid) -> None:
        self.forgotten += (member,)
        super().forget_member(member)


def test_a_gang_that_gathers_its_members_gives_nothing_back() -> None:
    cluster = a_cluster("1 racks x 4 nodes x 8").promising("a", node=4).build()
    cells = NotingCells(Engine(lease_seconds=60, topology=cluster), ())
    planner = GangPlanner(cells, UnlimitedNodes(nodes_of(cluster)), NoCalls())
    for index in range(10):
        planner.see(a_pod(index, 20))
        planner.step(now=0.0)
    assert cells.forgotten == ()


def test_a_member_of_a_large_gang_costs_no_more_than_one_of_a_small_gang() -> None:
    small, large = calls_in_a_life(SMALL), calls_in_a_life(LARGE)
    for part, calls in large.items():
        assert calls < 1.25 * small[part], f"{part}: {calls} calls, {small[part]} in a small gang"
