"""Gangs that wait for quota are planned once they are charged, and not before."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest

from extender.planning.pod_ranks import PodRanks
from extender.planning.quota_queue import QuotaQueue
from extender.queue.order.gang_order import GangOrder
from extender.queue.ports import UnknownRunTimes
from extender.settings import LEADERSHIP
from kube import marks
from kube.follow.policies import PolicySink
from policy.classes import NO_CLASSES
from policy.quotas.charge import Charge
from policy.quotas.limits import Limit, Scope
from policy.submission import GangKey, GroupName, UserName
from state.ledger.ledger import ChargeAnswer, LeaderTerm
from tests.support.extender.group_sizes import GroupSizes
from tests.support.extender.shell import Shell
from tests.support.kube.config_maps import a_policy_map
from tests.support.kube.events import KeptEvents
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.kube.workloads import workload_mark
from tests.support.queue.orders import queues
from tests.support.twins.ledger import MemoryLedger

CLASSES = """
apiVersion: cellgate.io/v1
kind: Classes
classes:
- {name: prod, cellPriority: 9, high: true}
default: prod
"""
QUOTAS = """
apiVersion: cellgate.io/v1
kind: Quotas
groups:
- name: vision
  limits: {leafCells: 8}
  over: queue
  users:
  - {name: alice}
"""


def queued(name: str, decision: UUID) -> PodBuilder:
    """A pod that the webhook has let in without a charge."""
    pod = a_pod(name).with_gpus(8).of_class("prod").submitted_by("alice").gated()
    return (
        pod.labelled(marks.GROUP_LABEL, "vision")
        .annotated(marks.DECISION_ANNOTATION, str(decision))
        .annotated(marks.UNCHARGED_ANNOTATION, "true")
    )


class QuotaQueueWorld:
    def __init__(self, ledger: MemoryLedger | None = None) -> None:
        self.ledger = ledger or MemoryLedger()
        self.shell = Shell()
        self.policies = policies = PolicySink(KeptEvents())
        policies.replace([a_policy_map("classes", CLASSES), a_policy_map("quotas", QUOTAS)])
        self.order = GangOrder()
        ranks = PodRanks(
            self.order,
            pods=self.shell.pods,
            run_times=UnknownRunTimes(),
            to_request=self.shell.to_request,
            clock=self.shell.clock,
        )
        self.queue = QuotaQueue(
            ledger=self.ledger,
            pods=self.shell.pods,
            sizes=GroupSizes(1),
            policies=policies,
            term=lambda: LeaderTerm(leadership=LEADERSHIP, epoch=1),
            rank_of=lambda pods: ranks.standing(pods).key,
        )
        self.told: list[GangKey] = []
        self.queue.on_charged.append(self.told.append)

    async def held(self) -> int:
        return (await self.ledger.usage(Scope(None, GroupName("vision")))).leaf_cells

    def holds(self, pod: PodBuilder) -> bool:
        read = self.shell.pods.read(pod)
        assert read is not None
        return self.queue.holds(read)


async def test_the_oldest_that_fits_is_charged_and_the_rest_goes_on_waiting() -> None:
    world = QuotaQueueWorld()
    first, second = queued("a", uuid4()), queued("b", uuid4())
    world.shell.pods.upsert(first)
    world.shell.pods.upsert(second)
    await world.queue.charge()
    assert await world.held() == 8
    assert [world.holds(first), world.holds(second)] == [False, True]
    assert [gang.name for gang in world.told] == ["a"]
    (live,) = await world.ledger.charges()
    assert live.expires_at is None


async def test_quota_is_given_in_the_order_of_the_queues_document() -> None:
    world = QuotaQueueWorld()
    urgent = "levels: [{name: all, strategy: fifo, worth: {userLevel: 1h}}]\n"
    world.order.configure(queues(urgent + "userLevels: {gold: [bob]}"), NO_CLASSES)
    first = queued("a", uuid4())
    second = queued("b", uuid4()).submitted_by("bob").created_at("1970-01-01T00:30:00Z")
    world.shell.pods.upsert(first)
    world.shell.pods.upsert(second)
    assert [pods[0].name for pods in world.queue.by_rank()] == ["b", "a"]
    await world.queue.charge()
    assert [world.holds(first), world.holds(second)] == [True, False]


async def test_gangs_of_the_same_second_are_charged_in_the_order_that_is_shown() -> None:
    """Whatever order their pods were seen in: another leader sees them in another one."""
    for seen in ("cab", "bca"):
        world = QuotaQueueWorld()
        pods = {name: queued(name, uuid4()) for name in seen}
        for pod in pods.values():
            world.shell.pods.upsert(pod)
        assert [members[0].name for members in world.queue.by_rank()] == ["a", "b", "c"]
        await world.queue.charge()
        assert [world.holds(pods[name]) for name in "abc"] == [False, True, True]


async def test_a_gang_is_told_which_limits_have_no_room_for_it() -> None:
    world = QuotaQueueWorld()
    pods = [queued(name, uuid4()) for name in ("first", "next", "last")]
    for pod in pods:
        world.shell.pods.upsert(pod)
    await world.queue.charge()
    full = ["group vision holds 8 of 8 leaf cells within quota"]
    told = [world.queue.lacks(world.shell.pod(name)) for name in ("first", "next", "last")]
    assert told == [[], full, full], "also the one that was not tried, because it is like another"


async def test_the_next_is_charged_when_there_is_room() -> None:
    world = QuotaQueueWorld()
    first, second = queued("a", uuid4()), queued("b", uuid4())
    world.shell.pods.upsert(first)
    world.shell.pods.upsert(second)
    await world.queue.charge()
    world.shell.pods.remove(first)
    (live,) = await world.ledger.charges()
    await world.ledger.release([live.charge.gang], term=LeaderTerm(leadership=LEADERSHIP, epoch=1))
    await world.queue.charge()
    assert not world.holds(second)
    assert await world.held() == 8


async def test_a_gang_that_a_leader_before_us_charged_is_charged_once() -> None:
    world = QuotaQueueWorld()
    pod = queued("a", uuid4())
    world.shell.pods.upsert(pod)
    await world.queue.charge()
    again = QuotaQueueWorld(world.ledger)
    again.shell.pods.upsert(pod)
    await again.queue.charge()
    assert not again.holds(pod)
    assert await again.held() == 8


async def test_who_is_not_marked_is_not_held() -> None:
    world = QuotaQueueWorld()
    assert not world.holds(a_pod("a").with_gpus(8).gated())


async def test_pods_of_a_group_that_is_no_gang_wait_and_are_charged_one_by_one() -> None:
    world = QuotaQueueWorld()
    pods = [
        queued(name, uuid4()).in_native_gang("g").annotated(marks.ALONE_ANNOTATION, "true")
        for name in "ab"
    ]
    for pod in pods:
        world.shell.pods.upsert(pod)
    await world.queue.charge()
    assert await world.held() == 8
    assert [world.holds(pod) for pod in pods] == [False, True]
    world.shell.pods.remove(pods[0])
    assert world.holds(pods[1])


async def test_a_gang_is_charged_for_what_its_members_ask_for_once_all_are_there() -> None:
    world = QuotaQueueWorld()
    decision = uuid4()
    small, large = (
        queued(name, decision).with_gpus(gpus).in_gang("g", size=2)
        for name, gpus in (("a", 1), ("b", 6))
    )
    world.shell.pods.upsert(small)
    await world.queue.charge()
    assert world.holds(small)
    assert await world.held() == 0
    world.shell.pods.upsert(large)
    await world.queue.charge()
    assert not world.holds(large)
    assert await world.held() == 7


class CountingLedger(MemoryLedger):
    """Counts how often it is asked to charge."""

    asked = 0

    async def charge(self, charge: Charge, *, limits: Sequence[Limit] = ()) -> ChargeAnswer:
        self.asked += 1
        return await super().charge(charge, limits=limits)


async def test_where_one_does_not_fit_none_like_it_is_tried() -> None:
    """Two thousand gangs over quota must not mean two thousand questions a second."""
    ledger = CountingLedger()
    world = QuotaQueueWorld(ledger)
    for number in range(20):
        world.shell.pods.upsert(queued(f"p{number:02}", uuid4()))
    await world.queue.charge()
    assert ledger.asked == 2
    assert await world.held() == 8


async def test_a_gang_with_too_much_cpu_does_not_hold_up_gangs_with_less() -> None:
    world = QuotaQueueWorld()
    quotas = QUOTAS.replace("leafCells: 8", "cpu: 8")
    world.policies.upsert(a_policy_map("quotas", quotas))
    for name, cpu, second in (("large", "9", 1), ("small", "1", 2)):
        pod = queued(name, uuid4()).with_cpu(cpu)
        world.shell.pods.upsert(pod.created_at(f"2026-01-01T00:00:0{second}Z"))
    await world.queue.charge()
    assert [gang.name for gang in world.told] == ["small"]


async def test_a_gang_of_which_some_were_let_go_was_charged_whatever_the_ledger_says() -> None:
    world = QuotaQueueWorld()
    waits = queued("a", uuid4()).in_gang("bert", size=2)
    let_go = queued("b", uuid4()).in_gang("bert", size=2)
    world.shell.pods.upsert(waits)
    assert world.holds(waits)
    world.shell.pods.upsert({**let_go, "spec": {**let_go["spec"], "schedulingGates": []}})
    assert not world.holds(waits)


async def test_a_pod_whose_decision_was_rewritten_stops_nobody() -> None:
    world = QuotaQueueWorld()
    pod = queued("a", uuid4()).unnamed("a-")
    pod["metadata"] |= {"name": "a-1", "uid": "uid-of-a", "resourceVersion": "1"}
    world.shell.pods.upsert(pod)
    world.shell.pods.upsert(pod.annotated(marks.DECISION_ANNOTATION, str(uuid4())))
    await world.queue.charge()
    assert await world.held() == 8


async def test_a_gang_that_ended_while_it_was_charged_leaves_nothing_to_a_namesake() -> None:
    world = QuotaQueueWorld()
    pod = queued("a", uuid4())
    world.shell.pods.upsert(pod)
    charge = world.ledger.charge

    async def charge_slowly(*args: Any, **options: Any) -> Any:
        world.shell.pods.remove(pod)
        return await charge(*args, **options)

    world.ledger.charge = charge_slowly  # type: ignore[method-assign]
    await world.queue.charge()
    assert world.told == []
    assert world.holds(pod)


async def test_a_forged_decision_stops_nobody() -> None:
    """One that is another gang's cannot be charged; the leader must not die of it, nor the next."""
    world = QuotaQueueWorld()
    decision = uuid4()
    for name in "abc":
        pod = queued(name, decision if name != "c" else uuid4())
        world.shell.pods.upsert(pod.with_gpus(4))
    await world.queue.charge()
    assert [gang.name for gang in world.told] == ["a", "c"]


async def test_a_gang_that_a_user_holds_is_not_charged() -> None:
    world = QuotaQueueWorld()
    world.queue.is_held = lambda pod: pod.name == "a"
    for name in "ab":
        world.shell.pods.upsert(queued(name, uuid4()).with_gpus(4))
    assert [pods[0].name for pods in world.queue.by_rank()] == ["b"], "it has no place meanwhile"
    await world.queue.charge()
    assert [gang.name for gang in world.told] == ["b"]


async def test_members_that_are_done_or_created_later_are_not_awaited() -> None:
    world, decision = QuotaQueueWorld(), uuid4()
    mark = workload_mark("train")
    pod = queued("a", decision).with_gpus(2).in_gang("bert", size=4)
    pod = pod.annotated(marks.WORKLOAD_ANNOTATION, mark)
    pod = pod.annotated(marks.LATE_ANNOTATION, "1x3,1x0")
    world.shell.pods.upsert(pod)
    await world.queue.charge()
    assert world.holds(pod), "two members are created first"
    done = a_pod("b").with_gpus(2).in_gang("bert", size=4).in_phase("Succeeded")
    world.shell.pods.upsert(done.annotated(marks.WORKLOAD_ANNOTATION, mark))
    await world.queue.charge()
    assert not world.holds(pod)
    assert await world.held() == 2 + 3 + 0
    (live,) = await world.ledger.charges()
    assert (live.charge.leaf_count_each, live.charge.places) == (2, 1), "for the late member"


async def test_the_ledger_is_asked_only_when_something_may_have_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("extender.planning.quota_queue._PAUSE_SECONDS", 0.0)
    ledger = CountingLedger()
    world = QuotaQueueWorld(ledger)
    task = asyncio.create_task(world.queue.run())
    world.shell.pods.upsert(queued("a", uuid4()))
    await _settled()
    assert [gang.name for gang in world.told] == ["a"]
    world.shell.pods.upsert(queued("b", uuid4()))
    await _settled()
    asked = ledger.asked
    await _settled()
    world.queue.note_freed([Scope(UserName("bob"))])
    await _settled()
    assert ledger.asked == asked, "nothing of its user or group was freed"
    (live,) = await ledger.charges()
    await ledger.release([live.charge.gang], term=LeaderTerm(leadership=LEADERSHIP, epoch=1))
    world.queue.note_freed(live.charge.scopes)
    await _settled()
    assert [gang.name for gang in world.told] == ["a", "b"]
    task.cancel()
    await asyncio.wait([task])


async def _settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)
