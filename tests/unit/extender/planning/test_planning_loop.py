"""The planner's shell: what is seen of pods, nodes and PodGroups, and which pods it lets go."""

import asyncio
from collections.abc import Callable
from datetime import datetime

import pytest

from extender.cells.views.listings import run_to_end
from extender.outcomes.evictions import Evictions
from extender.planning.action_executor import ActionExecutor
from extender.planning.pending_writes import PendingWrites
from kube import marks
from kube.api.binder import PodRef
from kube.api.pod_ender import Ended
from policy.classes import NO_CLASSES, Classes, PriorityClass
from policy.errors import BackendError
from policy.placement import Placement
from policy.submission import ClassName, GangKey, NodeName, PodUid
from policy.topology import ChainName
from tests.support.background import background
from tests.support.extender.leading import AlwaysLeading
from tests.support.extender.planning import planning
from tests.support.extender.shell import Shell
from tests.support.kube.nodes import a_node
from tests.support.kube.pods import PodBuilder, a_hived_pod, a_pod
from tests.support.kube.workloads import workload_mark
from tests.support.policy.cluster_texts import hived_text


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
        assert plans.waiting() == {}, "it usually follows at once"
        plans.shell.now += 5
        plans.planner.wake()
        await plans.looked()
        assert plans.waiting() == {
            "lab/bert": "gang lab/bert has no PodGroup that gives its size; create the PodGroup, "
            "or correct its name in the pods"
        }
        plans.groups.sizes["bert"] = 2
        plans.planner.observe_groups()
        assert await plans.looked() == []
        assert plans.waiting() == {}
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
        plans.shell.now += 5
        plans.planner.wake()
        await plans.looked()
        assert plans.waiting() == {
            "lab/a": "pod lab/a has a scheduling gate of another controller; scheduled once that "
            "controller has removed its gate"
        }
        plans.shell.pods.upsert(a_pod("a").with_gpus(8).in_vc("lab").gated())
        assert await plans.looked() == ["uid-of-a"]
        assert plans.waiting() == {}


async def test_a_gang_that_others_let_go_pod_by_pod_is_listed_until_it_has_its_places() -> None:
    def pod(name: str, *, is_held: bool) -> PodBuilder:
        pod = a_pod(name).with_gpus(8).in_vc("lab").in_gang("bert", size=3).gated()
        pod["spec"]["schedulingGates"] += [{"name": "example.com/later"}] if is_held else []
        return pod

    async with planning() as plans:
        plans.add_nodes()
        for name in "abc":
            plans.shell.pods.upsert(pod(name, is_held=True))
        reasons = []
        for name in "abc":
            for _ in range(2):
                plans.shell.now += 6
                plans.planner.wake()
                await plans.looked()
                reasons += [reason.split(";")[0] for reason in plans.waiting().values()]
            plans.shell.pods.upsert(pod(name, is_held=False))
            reasons += [reason.split(";")[0] for reason in plans.waiting().values()]
        assert await plans.looked() == ["uid-of-a", "uid-of-b", "uid-of-c"]
        assert plans.waiting() == {}
    held = "pod lab/{} has a scheduling gate of another controller"
    assert reasons[:4] == [held.format(name) for name in "aabb"]
    assert reasons[4:] == ["gang lab/bert is incomplete"] * 5
    assert len(plans.shell.events.said("Waiting")) == 2


async def test_a_gang_that_does_not_fit_waits_like_a_pod_that_was_never_gated() -> None:
    """It is listed, told once, and told when it has its place."""
    async with planning() as plans:
        plans.add_nodes()
        for name in "ab":
            pod = a_pod(name).with_gpus(8).in_vc("lab").in_gang("first", size=2).gated()
            plans.shell.pods.upsert(pod)
        for name in "cdef":
            pod = a_pod(name).with_gpus(8).in_vc("lab").in_gang("next", size=4).gated()
            plans.shell.pods.upsert(pod)
        await plans.looked()
        ((gang, reason),) = plans.waiting().items()
        assert gang == "lab/next"
        assert plans.shell.events.said("Waiting") == [("c", reason)]
        assert plans.shell.metrics.decisions.labels("placed")._value.get() == 2
        for name in "ab":
            plans.shell.pods.remove(a_pod(name))
        await plans.looked()
        assert plans.waiting() == {}
        assert [name for name, _ in plans.shell.events.said("Placed")] == ["c"]


async def test_a_gang_over_quota_waits_until_it_is_charged() -> None:
    async with planning() as plans:
        plans.add_nodes()
        plans.quota.has_room = False
        for name in "ab":
            pod = a_pod(name).with_gpus(8).in_vc("lab").in_gang("bert", size=2).gated()
            plans.shell.pods.upsert(pod.labelled(marks.GROUP_LABEL, "vision"))
        assert await plans.looked() == []
        waits = "gang lab/bert waits for quota of group vision"
        change = "starts once the limits of the group, and of the user in it, have room for"
        assert plans.waiting() == {"lab/bert": f"{waits}; {change} 16 more leaf cells"}
        assert [name for name, _ in plans.shell.events.said("Waiting")] == ["a"]
        plans.quota.has_room = True
        plans.planner.observe_charged(GangKey("lab", "bert"))
        assert plans.waiting() == {}
        assert await plans.looked() == ["uid-of-a", "uid-of-b"]


async def test_a_gang_of_a_class_that_is_not_listed_is_told_and_planned_once_it_is() -> None:
    async with planning() as plans:
        plans.add_nodes()
        prod = PriorityClass(name=ClassName("prod"), cell_priority=5)
        plans.classes = Classes.of([prod], default=prod.name)
        plans.shell.pods.upsert(a_pod("a").with_gpus(8).in_vc("lab").of_class("test").gated())
        await plans.looked()
        assert list(plans.waiting()) == ["lab/a"]
        plans.classes = NO_CLASSES
        run_to_end(plans.planner.rerank())
        assert await plans.looked() == ["uid-of-a"]
        assert plans.waiting() == {}


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
        plans.shell.cluster.use_document(two)
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
            plans.nodes.upsert(a_node("node-00").cordoned())
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


@pytest.mark.parametrize("goes_away", [True, False], ids=["spared", "ended"])
async def test_a_victim_is_spared_if_the_preemptor_goes_away_between_the_writes(
    *, goes_away: bool
) -> None:
    ender, shell = SlowEnder(), Shell()
    evictions = Evictions(
        ender, pods=shell.pods, outcomes=shell.outcomes, reclaims=shell.reclaims()
    )
    executor = ActionExecutor(
        None,  # type: ignore[arg-type] # no pod is released
        leading=AlwaysLeading(),  # type: ignore[arg-type] # all that it uses
        pods=shell.pods,
        pending=PendingWrites(),
        evictions=evictions,
    )
    async with planning(executor, shell) as plans, background(evictions.run()):
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
    assert shell.metrics.preemptions.labels("cellgate", "priority")._value.get() == 1
    assert shell.metrics.victims._value.get() == len(ender.ended)


def _failed_job_pod(name: str, *, node: str, at: datetime) -> PodBuilder:
    told = {"exitCode": 1, "startedAt": at.isoformat(), "finishedAt": at.isoformat()}
    status = [{"name": "main", "state": {"terminated": told}}]
    pod = a_pod(name).with_gpus(8).in_vc("lab").bound_to(node)
    pod = pod.annotated(marks.WORKLOAD_ANNOTATION, workload_mark("train"))
    return pod.with_status(phase="Failed", containerStatuses=status)


async def test_a_retry_of_a_job_avoids_the_node_on_which_it_failed() -> None:
    async with planning() as plans:
        plans.add_nodes()
        now = plans.shell.clock.now()
        plans.shell.pods.upsert(_failed_job_pod("train-a", node="node-00", at=now))
        other = a_pod("other").with_gpus(8).in_vc("lab").gated()
        plans.shell.pods.upsert(other)
        assert await plans.looked() == ["uid-of-other"]
        assert plans.placed() == ["node-00"], "no other workload avoids it"
        plans.shell.pods.remove(other)
        retry = a_pod("train-b").with_gpus(8).in_vc("lab").gated()
        plans.shell.pods.upsert(retry.annotated(marks.WORKLOAD_ANNOTATION, workload_mark("train")))
        assert await plans.looked() == ["uid-of-other", "uid-of-train-b"]
        assert plans.placed() == ["node-01"]


async def test_a_refused_node_is_used_again_once_it_offers_more() -> None:
    async with planning() as plans:
        plans.add_nodes()
        for index in range(1, 4):
            plans.shell.node(f"node-{index:02}", is_healthy=False)
        plans.shell.pods.upsert(a_pod("a").with_gpus(8).in_vc("lab").gated())
        assert await plans.looked() == ["uid-of-a"]
        plans.planner._gangs.refuse_node(PodUid("uid-of-a"), now=0.0)
        plans.shell.now = 4.0
        plans.planner.wake()
        await plans.looked()
        assert plans.placed() == []
        amounts = {"nvidia.com/gpu": "8", "hugepages-1Gi": "64Gi"}
        plans.nodes.upsert(a_node("node-00").with_status(capacity=amounts, allocatable=amounts))
        await plans.looked()
        assert plans.placed() == ["node-00"]
