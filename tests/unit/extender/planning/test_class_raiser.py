"""Gangs that quotas lowered are raised when the quotas have room, the oldest first."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from extender.planning.class_raiser import ClassRaiser
from extender.settings import LEADERSHIP
from extender.upkeep.reranker import Reranker
from kube import marks
from kube.api.binder import PodRef
from kube.api.client import KubeError
from kube.follow.policies import PolicySink
from policy.errors import BackendError
from policy.quotas.charge import Charge
from policy.quotas.limits import Measure, Scope
from policy.submission import ClassName, GangKey, GroupName, UserName
from service.clock import Clock
from state.ledger.ledger import LeaderTerm
from tests.support.extender.group_sizes import GroupSizes
from tests.support.extender.shell import Shell
from tests.support.kube.config_maps import a_policy_map
from tests.support.kube.events import KeptEvents
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.state.charges import a_charge
from tests.support.twins.ledger import MemoryLedger

HEAD = "apiVersion: cellgate.io/v1\nkind: "
CLASSES = f"""{HEAD}Classes
classes:
- {{name: prod, cellPriority: 100, high: true}}
- {{name: test, cellPriority: 9, high: true}}
- {{name: oppo, cellPriority: -1}}
default: test
"""
QUOTAS = f"""{HEAD}Quotas
groups:
- name: vision
  limits: {{leafCells: %s}}
  over: oppo
  users: [{{name: alice}}, {{name: bob}}]
"""
RULES = f"{HEAD}Rules\nrules:\n- {{priority: test, occupiedHigh: '> 8', then: oppo}}\n"
TERM = LeaderTerm(leadership=LEADERSHIP, epoch=1)
VISION = GroupName("vision")


class _CountingLedger(MemoryLedger):
    """Counts the raises that are asked for."""

    raises = 0

    async def raise_class(self, live: Charge, class_name: ClassName, **fields: Any) -> Any:
        self.raises += 1
        return await super().raise_class(live, class_name, **fields)


class _Marker:
    """The API server: the mark of a pod is in the next object of its feed."""

    def __init__(self, world: "RaiserWorld") -> None:
        self._world = world
        self.failing: Callable[[PodRef], bool] = lambda _: False
        self.refused: Sequence[str] = ()

    async def mark_class(self, pod: PodRef, class_name: str) -> None:
        if pod.name in self.refused:
            raise KubeError("denied by another webhook", status=403)
        if self.failing(pod):
            raise BackendError("no answer")
        marked = self._world.objects[pod.name].annotated(
            marks.EFFECTIVE_CLASS_ANNOTATION, class_name
        )
        self._world.objects[pod.name] = marked
        self._world.shell.pods.upsert(marked)


class RaiserWorld:
    """One leader over a ledger; another leader can take over."""

    def __init__(self, ledger: _CountingLedger | None = None, *, quota: int = 8) -> None:
        self.now = datetime(2026, 5, 31, 22, 0, tzinfo=UTC)
        self.ledger = ledger or _CountingLedger(lambda: self.now)
        self.policies = PolicySink(KeptEvents())
        self.shell = Shell(classes=lambda: self.policies.policy.classes)
        self.use(quota)
        self.shell.recover()
        self.objects: dict[str, PodBuilder] = {}
        self.marker = _Marker(self)
        Reranker(
            cluster=self.shell.cluster,
            pods=self.shell.pods,
            policies=self.policies,
            to_request=self.shell.to_request,
            to_bound=self.shell.to_bound,
            turn=asyncio.Lock(),
        ).start()
        self.raiser = ClassRaiser(
            ledger=self.ledger,
            pods=self.shell.pods,
            sizes=GroupSizes(1),
            policies=self.policies,
            outcomes=self.shell.outcomes,
            marker=self.marker,  # type: ignore[arg-type] # all that it uses
            term=lambda: TERM,
            clock=Clock(now=lambda: self.now),
        )

    def use(self, quota: int, *extra: dict[str, object]) -> None:
        maps = [a_policy_map("classes", CLASSES), a_policy_map("quotas", QUOTAS % quota)]
        self.policies.replace([*maps, *extra])

    async def hold(self, gang: str, leaf_count: int = 8, user: str = "bob") -> GangKey:
        """Let a gang within quota hold leaf cells."""
        key = GangKey("lab", gang)
        fields = {"user": UserName(user), "class_name": ClassName("test"), "leaf_type": None}
        await self.ledger.charge(a_charge(key, leaf_count=leaf_count, group=VISION, **fields))
        return key

    async def release(self, gang: GangKey, user: str = "bob") -> None:
        await self.ledger.release([gang], term=TERM)
        name = UserName(user)
        self.raiser.note_freed([Scope(name), Scope(name, VISION), Scope(None, VISION)])

    async def lowered(self, gang: str, *names: str, at: int = 0, gpus: int = 8) -> UUID:
        """Create a gang that the webhook lowered, with these pods."""
        decision = uuid4()
        key = GangKey("lab", gang)
        await self.ledger.charge(
            a_charge(
                key,
                decision=decision,
                group=VISION,
                leaf_type=None,
                class_name=ClassName("oppo"),
                is_high=False,
                leaf_count=gpus * len(names),
                rises_to=ClassName("test"),
            )
        )
        for name in names:
            pod = a_pod(name).with_gpus(gpus).in_vc("lab").of_class("oppo").submitted_by("alice")
            pod = pod.in_gang(gang, size=len(names)).charged_to("vision")
            pod = pod.created_at(f"2026-05-31T21:00:{at:02}Z")
            self.objects[name] = (
                pod.annotated(marks.DECISION_ANNOTATION, str(decision))
                .annotated(marks.OVER_QUOTA_ANNOTATION, "test")
                .annotated(marks.REQUESTED_CLASS_ANNOTATION, "test")
            )
            self.shell.pods.upsert(self.objects[name])
        return decision

    async def classes(self) -> dict[str, str]:
        """The class that each gang is charged in."""
        live = await self.ledger.charges()
        return {one.charge.gang.name: str(one.charge.class_name) for one in live}

    def stated(self, names: Sequence[str]) -> list[str | None]:
        """What each pod states as its effective class."""
        read = [self.shell.pods.read(self.objects[name]) for name in names]
        return [pod.effective_class for pod in read if pod is not None]


async def test_a_gang_is_raised_once_its_quotas_have_room() -> None:
    world = RaiserWorld()
    holder = await world.hold("holder")
    await world.lowered("low", "a", "b", gpus=4)
    await world.raiser.work()
    assert (await world.classes())["low"] == "oppo"
    await world.release(holder)
    await world.raiser.work()
    assert (await world.classes())["low"] == "test"
    assert world.stated(["a", "b"]) == ["test", "test"]
    assert world.shell.events.said("ClassRaised") == [
        (
            "a",
            "gang lab/low of alice (8 leaf cells) is raised from class oppo to test: "
            "with it, group vision holds 8 of 8 leaf cells within quota",
        )
    ]


async def test_the_engine_ranks_a_gang_by_its_effective_class() -> None:
    world = RaiserWorld()
    await world.lowered("low", "a", "b", gpus=4)
    await world.raiser.work()
    requests = [world.shell.to_request(world.shell.pod(name)) for name in ("a", "b")]
    assert [request.priority for request in requests] == [9, 9]


async def test_a_gang_has_one_class_from_the_first_pod_that_states_it() -> None:
    world = RaiserWorld()
    await world.lowered("low", "a", "b", gpus=4)
    world.marker.failing = lambda pod: pod.name == "b"
    with pytest.raises(BackendError):
        await world.raiser.work()
    assert world.stated(["a", "b"]) == ["test", None]
    assert [world.shell.pod(name).charged_class for name in ("a", "b")] == ["test", "test"]
    world.marker.failing = lambda _: False
    await world.raiser.work()
    assert world.stated(["a", "b"]) == ["test", "test"]
    assert len(world.shell.events.said("ClassRaised")) == 1


async def test_a_pod_that_cannot_be_marked_delays_no_other_gang() -> None:
    world = RaiserWorld(quota=16)
    await world.lowered("first", "a", at=1)
    await world.lowered("second", "b", at=2)
    world.marker.refused = ["a"]
    for _ in range(2):
        with pytest.raises(BackendError):
            await world.raiser.work()
    assert await world.classes() == {"first": "test", "second": "test"}
    assert world.stated(["a", "b"]) == [None, "test"]


async def test_a_raise_that_a_leader_left_half_written_is_completed_by_the_next() -> None:
    first = RaiserWorld()
    await first.lowered("low", "a", "b", gpus=4)
    first.marker.failing = lambda _: True
    with pytest.raises(BackendError):
        await first.raiser.work()
    next_leader = RaiserWorld(first.ledger)
    next_leader.objects = first.objects
    for pod in first.objects.values():
        next_leader.shell.pods.upsert(pod)
    await next_leader.raiser.work()
    assert next_leader.stated(["a", "b"]) == ["test", "test"]
    assert (await next_leader.classes())["low"] == "test"


async def test_a_pod_that_arrives_after_the_raise_states_the_class_too() -> None:
    world = RaiserWorld(quota=16)
    await world.lowered("low", "a", "b", gpus=4)
    late = world.objects.pop("b")
    world.shell.pods.remove(late)
    await world.raiser.work()
    world.objects["b"] = late
    world.shell.pods.upsert(late)
    await world.raiser.work()
    assert world.stated(["a", "b"]) == ["test", "test"]


async def test_the_gang_that_was_asked_for_first_is_raised_first() -> None:
    world = RaiserWorld()
    holder = await world.hold("holder")
    await world.lowered("young", "y", at=9)
    await world.lowered("old", "o", at=3)
    await world.raiser.work()
    await world.release(holder)
    await world.raiser.work()
    assert await world.classes() == {"young": "oppo", "old": "test"}


async def test_a_small_gang_is_raised_past_a_large_one_that_does_not_fit() -> None:
    world = RaiserWorld()
    await world.hold("holder", 6)
    await world.lowered("large", "l", at=1)
    await world.lowered("small", "s", at=2, gpus=2)
    await world.raiser.work()
    classes = await world.classes()
    assert (classes["large"], classes["small"]) == ("oppo", "test")


async def test_the_ledger_is_asked_once_for_a_limit_however_many_gangs_wait() -> None:
    world = RaiserWorld()
    await world.hold("holder")
    for number in range(20):
        await world.lowered(f"low-{number}", f"p-{number}", at=number)
    await world.raiser.work()
    await world.raiser.work()
    assert world.ledger.raises == 1


async def test_a_change_of_the_quotas_raises() -> None:
    world = RaiserWorld()
    await world.hold("holder")
    await world.lowered("low", "a")
    await world.raiser.work()
    world.use(16)
    await world.raiser.work()
    assert (await world.classes())["low"] == "test"


async def test_a_new_day_lets_hours_be_compared_again() -> None:
    world = RaiserWorld()
    await world.hold("holder")
    await world.lowered("low", "a")
    await world.raiser.work()
    world.now += timedelta(hours=3)
    await world.raiser.work()
    assert world.ledger.raises == 2


async def test_rules_still_hold_for_a_gang_that_is_raised() -> None:
    """A submitter must not get more in high classes by having been over quota before."""
    world = RaiserWorld(quota=64)
    world.use(64, a_policy_map("rules", RULES))
    await world.hold("own", 8, user="alice")
    await world.lowered("low", "a")
    await world.raiser.work()
    assert (await world.classes())["low"] == "oppo"
    own = GangKey("lab", "own")
    await world.release(own, user="alice")
    await world.raiser.work()
    assert (await world.classes())["low"] == "test"


async def test_explain_says_what_a_gang_beyond_quota_waits_for() -> None:
    world = RaiserWorld()
    await world.hold("holder", 6)
    await world.lowered("low", "a")
    await world.raiser.work()
    assert world.raiser.explain(world.shell.pod("a")) == (
        "rises to class test when its quotas allow: "
        "group vision holds 6 of 8 leaf cells within quota, and 8 more must fit"
    )


async def test_without_the_ledger_nothing_changes_and_the_next_try_raises() -> None:
    world = RaiserWorld()
    await world.lowered("low", "a")
    world.ledger.is_away = True
    with pytest.raises(BackendError):
        await world.raiser.work()
    world.ledger.is_away = False
    await world.raiser.work()
    assert (await world.classes())["low"] == "test"


async def test_a_gang_that_ended_is_not_raised() -> None:
    world = RaiserWorld()
    holder = await world.hold("holder")
    await world.lowered("low", "a")
    await world.raiser.work()
    world.shell.pods.remove(world.objects["a"])
    await world.release(holder)
    await world.raiser.work()
    assert world.ledger.raises == 1


async def test_a_charge_that_has_grown_is_raised_as_it_is_now() -> None:
    world = RaiserWorld()
    await world.lowered("low", "a", gpus=4)
    (live,) = await world.ledger.charges()
    await world.ledger.resize(live.charge, 6)
    await world.raiser.work()
    assert (await world.ledger.usage(Scope(None, VISION))).used(Measure.LEAF_CELLS) == 6
