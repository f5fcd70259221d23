"""The planner's shell: what is seen of pods, nodes and PodGroups, and which pods it lets go."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from extender.cluster.document_text import read_cluster_text
from extender.feeds.pod_feed import NodeSink
from extender.feeds.requests import to_member_request
from extender.outcomes.announcer import Announcer
from extender.outcomes.eviction import Ending
from extender.planning.actions import Hands
from extender.planning.cluster_cells import ClusterCells
from extender.planning.pending_writes import Writing
from extender.planning.planning_loop import Planner
from extender.queue.model import Action, Release
from kube.api.binder import PodRef
from kube.api.events import EventWriter
from kube.api.pod_ender import Ended
from kube.read.node_choice import NodeChoice
from kube.read.pods import ManagedPod
from policy.classes import NO_CLASSES
from policy.errors import BackendError
from policy.placement import Placement
from policy.submission import NodeName, PodUid
from policy.topology import ChainName
from service.clock import Clock
from tests.support.cluster_texts import hived_text
from tests.support.extender_shell import Shell
from tests.support.kube_objects import PodBuilder, a_pod


class Groups:
    """PodGroups, as they become known."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def size(self, pod: ManagedPod) -> int | None:
        return self.sizes.get(pod.gang.key.name)

    def is_awaited(self, pod: ManagedPod) -> bool:
        return pod.gang.size is None and self.size(pod) is None


class RecordingHands:
    """Lets pods go, as far as it knows."""

    def __init__(self) -> None:
        self.released: list[PodUid] = []
        self.writing = Writing()

    async def do(
        self, action: Action, pod: ManagedPod, *, is_wanted: Callable[[], bool]
    ) -> str | None:
        assert is_wanted()
        if isinstance(action, Release):
            self.released.append(action.uid)
        return None


class Planning:
    """A planner over a cluster of four nodes with eight leaf cells."""

    def __init__(self, hands: Hands | None = None) -> None:
        self.shell = Shell()
        self.groups = Groups()
        self.hands = RecordingHands()
        choice = NodeChoice()
        self.nodes = NodeSink(self.shell.cluster, choice)
        self.planner = Planner(
            cells=ClusterCells(self.shell.cluster, self.shell.pods, being_bound=()),
            pods=self.shell.pods,
            nodes=choice,
            to_request=lambda pod: to_member_request(pod, classes=NO_CLASSES, sizes=self.groups),
            hands=hands or self.hands,  # type: ignore[arg-type] # all that it uses of them
            announcer=Announcer(EventWriter(None, Clock())),  # type: ignore[arg-type] # nobody listens
            metrics=self.shell.metrics,
            clock=Clock(),
        )
        self.planner.follow_groups(self.groups.is_awaited)
        self.shell.recover()

    def add_nodes(self, **spec: Any) -> None:
        for index in range(4):
            self.nodes.upsert(a_node(f"node-{index:02}", **spec))

    async def looked(self) -> list[PodUid]:
        """Let it look until it has nothing to do; whom it has released."""
        for _ in range(50):
            await asyncio.sleep(0)
        return sorted(self.hands.released)

    def placed(self) -> list[str]:
        members = self.shell.cluster.members
        return sorted(one.placement.node for _, one in members.items())


def a_node(name: str, **spec: Any) -> dict[str, Any]:
    devices = {"nvidia.com/gpu": "8"}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": name},
        "spec": spec,
        "status": {"capacity": devices, "allocatable": devices, "conditions": ready},
    }


@asynccontextmanager
async def planning(hands: Hands | None = None) -> AsyncIterator[Planning]:
    plans = Planning(hands)
    running = asyncio.create_task(plans.planner.run())
    yield plans
    running.cancel()
    await asyncio.wait([running])


async def test_a_taint_that_is_taken_off_wakes_who_waits_for_the_nodes() -> None:
    async with planning() as plans:
        plans.add_nodes(taints=[{"key": "maintenance", "effect": "NoSchedule"}])
        plans.shell.pods.upsert(a_pod("a").with_gpus(8).in_vc("lab").gated())
        assert await plans.looked() == []
        plans.add_nodes()
        assert await plans.looked() == ["uid-of-a"]


async def test_a_gang_waits_for_the_podgroup_that_says_how_large_it_is() -> None:
    """Its pods may be seen first: alone each of them would start without the others."""
    async with planning() as plans:
        plans.add_nodes()
        pod = a_pod("a").with_gpus(8).in_vc("lab").in_native_gang("bert").gated()
        plans.shell.pods.upsert(pod)
        assert await plans.looked() == []
        read = plans.shell.pods.get(PodUid("uid-of-a"))
        assert read is not None
        assert plans.planner.why_queued(read) == (
            "gang lab/bert waits for its PodGroup, which says how large it is"
        )
        plans.groups.sizes["bert"] = 2
        plans.planner.look_for_groups()
        assert await plans.looked() == []
        plans.shell.pods.upsert(a_pod("b").with_gpus(8).in_vc("lab").in_native_gang("bert").gated())
        assert await plans.looked() == ["uid-of-a", "uid-of-b"]


async def test_a_pod_that_others_hold_gets_no_place_before_they_let_it_go() -> None:
    """It could not start: victims would end for nothing, and its cells would lie idle."""
    async with planning() as plans:
        plans.add_nodes()
        pod = a_pod("a").with_gpus(8).in_vc("lab").gated()
        pod["spec"]["schedulingGates"].append({"name": "example.com/later"})
        plans.shell.pods.upsert(pod)
        assert (await plans.looked(), plans.placed()) == ([], [])
        read = plans.shell.pods.get(PodUid("uid-of-a"))
        assert read is not None
        assert plans.planner.why_queued(read) == (
            "pod lab/a is held by a scheduling gate that is not ours"
        )
        plans.shell.pods.upsert(a_pod("a").with_gpus(8).in_vc("lab").gated())
        assert await plans.looked() == ["uid-of-a"]


async def test_members_beyond_what_a_podgroup_needs_start_by_themselves() -> None:
    async with planning() as plans:
        plans.add_nodes()
        plans.groups.sizes["bert"] = 2
        for name in "abcde":
            pod = a_pod(name).with_gpus(8).in_vc("lab").in_native_gang("bert").gated()
            plans.shell.pods.upsert(pod)
        assert await plans.looked() == ["uid-of-a", "uid-of-b", "uid-of-c", "uid-of-d"]
        plans.shell.pods.remove(a_pod("d"))
        assert await plans.looked() == ["uid-of-a", "uid-of-b", "uid-of-c", "uid-of-d", "uid-of-e"]


async def test_a_gang_whose_cells_are_gone_from_the_document_is_planned_again() -> None:
    async with planning() as plans:
        plans.add_nodes()
        for name in "ab":
            pod = a_pod(name).with_gpus(8).in_vc("lab").in_gang("bert", size=2).gated()
            plans.shell.pods.upsert(pod)
        assert await plans.looked() == ["uid-of-a", "uid-of-b"]
        two = hived_text(racks=1, lab=2).replace("node-00", "node-02").replace("node-01", "node-03")
        plans.shell.cluster.use_document(read_cluster_text(two))
        await plans.looked()
        assert plans.placed() == ["node-02", "node-03"]


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "cordoned"])
async def test_a_gang_does_not_wait_for_a_node_that_died_on_it(*, is_gone: bool) -> None:
    """kube-scheduler asks us only if it has other nodes to offer."""
    async with planning() as plans:
        plans.add_nodes()
        for name in "ab":
            pod = a_pod(name).with_gpus(8).in_vc("lab").in_gang("bert", size=2).gated()
            plans.shell.pods.upsert(pod)
        await plans.looked()
        assert plans.placed() == ["node-00", "node-01"]
        if is_gone:
            plans.nodes.remove(a_node("node-00"))
        else:
            plans.nodes.upsert(a_node("node-00", unschedulable=True))
        await plans.looked()
        assert plans.placed() == ["node-02", "node-03"]


class SlowEnder:
    """Ends pods in two writes, the second when it is told to."""

    def __init__(self) -> None:
        self.halfway: list[str] = []
        self.ended: list[str] = []
        self.goes_on = asyncio.Event()

    async def end(self, pod: PodRef, *, why: str, is_wanted: Callable[[], bool]) -> Ended:
        self.halfway.append(pod.name)
        await self.goes_on.wait()
        if not is_wanted():
            raise BackendError("need not end any more")
        self.ended.append(pod.name)
        return Ended.NOW


class Leads:
    def check(self) -> None:
        """Always."""


def a_hived_pod(name: str, *, priority: int) -> PodBuilder:
    spec = f"{{virtualCluster: lab, priority: {priority}, leafCellNumber: 8}}"
    return a_pod(name).with_gpus(8).with_hived_spec(spec)


@pytest.mark.parametrize("goes_away", [True, False], ids=["spared", "ended"])
async def test_a_victim_is_spared_if_the_preemptor_goes_away_between_the_writes(
    *, goes_away: bool
) -> None:
    ender, metrics = SlowEnder(), Shell().metrics
    ending = Ending(ender, announcer=Announcer(EventWriter(None, Clock())), metrics=metrics)  # type: ignore[arg-type] # nobody listens
    hands = Hands(None, leading=Leads(), writing=Writing(), ending=ending)  # type: ignore[arg-type] # nobody is released
    async with planning(hands) as plans:
        plans.add_nodes()
        for index in range(4):
            node = NodeName(f"node-{index:02}")
            there = Placement(node=node, leaf_cells=tuple(range(8)), chain=ChainName("rack"))
            low = a_hived_pod(f"low-{index}", priority=0).placed(there).bound_to(node)
            plans.shell.pods.upsert(low)
        plans.shell.pods.upsert(a_hived_pod("high", priority=5).gated())
        await plans.looked()
        (victim,) = ender.halfway
        if goes_away:
            plans.shell.pods.remove(a_hived_pod("high", priority=5))
        await plans.looked()
        ender.goes_on.set()
        await plans.looked()
    assert ender.halfway == [victim]
    assert ender.ended == ([] if goes_away else [victim])
    assert metrics.victims._value.get() == len(ender.ended)
