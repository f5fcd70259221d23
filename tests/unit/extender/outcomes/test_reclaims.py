"""Gentle ends: which workloads are suspended, what falls back to eviction, and who resumes."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from extender.outcomes.evictions import Evictions
from kube.api.binder import PodRef
from kube.api.client import KubeError
from kube.api.pod_ender import Ended
from kube.api.suspender import CannotSuspendError, EndsWith, MarkedWorkload, Resumption
from kube.marks import WORKLOAD_ANNOTATION
from kube.read.suspension import ReclaimMark
from kube.read.workloads import Workload
from policy.submission import PodUid, UserName
from tests.support.background import background
from tests.support.eventually import eventually
from tests.support.extender.gang_pods import bound
from tests.support.extender.shell import Shell
from tests.support.kube.pods import PodBuilder, a_pod

UID = "6f0c0000-0000-0000-0000-000000000000"
JOB = Workload(group="batch", kind="Job", name="low", uid=UID)
WHY = "gang lab/g is preempted by gang lab/high"


class OneWorkload:
    """The API server with one Job; `suspended` and `resumed` say what was done to it."""

    def __init__(self, world: "ReclaimWorld") -> None:
        self._world = world
        self.error: Exception | None = None
        self.errors = 1_000
        self.controls = True
        self.answers = [Resumption.DONE]
        self.suspended: list[ReclaimMark] = []
        self.resumed = 0
        self.left_by_others: list[MarkedWorkload] = []
        self.unlisted = ""
        self.pods: list[PodUid] = []
        """What the API server lists of it."""
        self.spared: list[PodUid] = []

    async def suspend(
        self,
        workload: Workload,
        *,
        namespace: str,
        mark: ReclaimMark,
        ends: EndsWith,
        is_wanted: Callable[[], bool],
    ) -> ReclaimMark:
        self.spared = [uid for uid in self.pods if not ends.includes(uid, uid == "decided")]
        await asyncio.sleep(0)
        self.errors -= 1
        if self.error is not None and self.errors >= 0:
            raise self.error
        if not is_wanted():
            raise CannotSuspendError("need not end")
        self.suspended.append(mark)
        if self.controls:
            self._world.delete_all()
        return mark

    async def resume(self, workload: Workload, *, namespace: str) -> Resumption:
        self.resumed += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def marked(self, group: str, kind: str) -> list[MarkedWorkload]:
        if kind == self.unlisted:
            raise KubeError("its conversion webhook is away", status=500)
        return self.left_by_others if (group, kind) == (JOB.group, JOB.kind) else []


class ReclaimWorld:
    """A gang of two pods of one Job, on two nodes."""

    def __init__(self) -> None:
        self.shell = Shell()
        self.api = OneWorkload(self)
        self.reclaims = self.shell.reclaims(self.api)
        self.evicted: list[str] = []
        self.evictions = Evictions(
            self, pods=self.shell.pods, outcomes=self.shell.outcomes, reclaims=self.reclaims
        )
        self.shell.recover()
        for name, node in (("a", "node-00"), ("b", "node-01")):
            self.shell.pods.upsert(self.member(name, node))

    def member(self, name: str, node: str) -> PodBuilder:
        return bound(name, node).annotated(WORKLOAD_ANNOTATION, JOB.mark)

    def delete_all(self) -> None:
        """Do what the controller of a suspended Job does."""
        for name, node in (("a", "node-00"), ("b", "node-01")):
            if self.shell.pods.get(PodUid(f"uid-of-{name}")) is not None:
                self.shell.pods.upsert(self.member(name, node).being_deleted())

    def remove_all(self) -> None:
        for name, node in (("a", "node-00"), ("b", "node-01")):
            self.shell.pods.remove(self.member(name, node))

    async def end(self, pod: PodRef, *, why: str, is_wanted: Callable[[], bool]) -> Ended:
        self.evicted.append(pod.name)
        return Ended.NOW

    async def reclaim(self, *names: str) -> None:
        async with background(self.evictions.run()):
            pods = [self.shell.pod(name) for name in names]
            ends = [self.evictions.end(pod, why=WHY, is_wanted=lambda: True) for pod in pods]
            await asyncio.gather(*ends)

    def counted(self, outcome: str) -> float:
        return float(self.shell.metrics.suspensions.labels(outcome)._value.get())


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> ReclaimWorld:
    monkeypatch.setattr("extender.outcomes.evictions._FIRST_PAUSE_SECONDS", 0)
    monkeypatch.setattr("extender.outcomes.reclaims._LOOK_SECONDS", 0.01)
    return ReclaimWorld()


async def test_a_workload_whose_pods_are_all_victims_is_suspended_once(
    world: ReclaimWorld,
) -> None:
    await world.reclaim("a", "b")
    (mark,) = world.api.suspended
    assert (mark.why, mark.gang, mark.times) == (WHY, "lab/g", 1)
    assert world.evicted == []
    assert world.shell.metrics.victims._value.get() == 2
    told = dict(world.shell.events.said("Preempted"))
    assert told["a"] == told["b"] == WHY
    assert "Cellgate has suspended Job low" in told["low"]


async def test_pods_that_are_not_managed_do_not_end_with_their_workload(
    world: ReclaimWorld,
) -> None:
    running, gated, gone = (a_pod(name).in_gang("g", size=4) for name in ("r", "w", "gone"))
    for helper in (running.bound_to("node-00"), gated, gone):
        world.shell.pods.upsert(helper)
    world.shell.pods.remove(gone)
    names = ("uid-of-a", "uid-of-r", "uid-of-w", "uid-of-gone", "decided", "driver")
    world.api.pods = [PodUid(name) for name in names]
    await world.reclaim("a", "b")
    assert world.api.spared == ["uid-of-r", "driver"]


async def test_a_part_of_a_workload_is_evicted(world: ReclaimWorld) -> None:
    await world.reclaim("a")
    assert (world.api.suspended, world.evicted) == ([], ["a"])
    assert ("low", WHY) in world.shell.events.said("Preempted"), "the Job is told all the same"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (CannotSuspendError("Kueue does"), "refused"),
        (KubeError("no", status=403), "forbidden"),
        (KubeError("no", status=422), "failed"),
        (KubeError("away"), "failed"),
    ],
    ids=["obstacle", "no right", "refused by another webhook", "away again and again"],
)
async def test_a_workload_that_cannot_be_suspended_is_evicted(
    world: ReclaimWorld, error: Exception, outcome: str
) -> None:
    world.api.error = error
    await world.reclaim("a", "b")
    assert sorted(world.evicted) == ["a", "b"]
    assert world.counted(outcome) == 1


async def test_one_failure_of_the_api_server_evicts_no_pod(world: ReclaimWorld) -> None:
    world.api.error, world.api.errors = KubeError("away", status=500), 1
    await world.reclaim("a", "b")
    assert (len(world.api.suspended), world.evicted) == (1, [])


async def test_a_missing_right_is_remembered_for_the_kind(world: ReclaimWorld) -> None:
    world.api.error = KubeError("no", status=403)
    await world.reclaim("a", "b")
    other = replace(world.shell.pod("a"), workload=replace(JOB, uid="another", name="other"))
    assert not world.reclaims.may_suspend(other)
    world.shell.now += 601
    assert world.reclaims.may_suspend(other)


async def test_pods_that_the_controller_does_not_end_are_evicted(
    world: ReclaimWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extender.outcomes.reclaims._CONTROLLER_SECONDS", 0)
    world.api.controls = False
    await world.reclaim("a", "b")
    assert sorted(world.evicted) == ["a", "b"]


async def test_a_workload_is_resumed_once_its_pods_are_gone(world: ReclaimWorld) -> None:
    world.api.answers = [Resumption.NOT_YET, Resumption.DONE]
    async with background(world.reclaims.run()):
        await world.reclaim("a", "b")
        await asyncio.sleep(0.03)
        assert world.api.resumed == 0, "its pods are still there"
        world.remove_all()
        await eventually(lambda: world.api.resumed == 1)
        world.shell.now += 1
        await eventually(lambda: world.counted("resumed") == 1)
    assert [name for name, _ in world.shell.events.said("Resumed")] == ["low"]


async def test_a_kind_that_cannot_be_listed_keeps_no_workload_suspended(
    world: ReclaimWorld,
) -> None:
    world.api.unlisted = "RayJob"
    async with background(world.reclaims.run()):
        await world.reclaim("a", "b")
        world.remove_all()
        await eventually(lambda: world.counted("resumed") == 1)


async def test_pods_that_do_not_go_do_not_keep_a_workload_suspended(world: ReclaimWorld) -> None:
    async with background(world.reclaims.run()):
        await world.reclaim("a", "b")
        world.shell.now += 601
        await eventually(lambda: world.counted("resumed") == 1)


async def test_new_pods_have_the_age_of_the_first_ones(world: ReclaimWorld) -> None:
    mark = ReclaimMark(why=WHY, gang="lab/g", decision="d", at=90.0, first_asked=10.0)
    world.api.left_by_others = [
        MarkedWorkload(
            workload=JOB,
            namespace="lab",
            created=30.0,
            mark=mark,
            is_suspended=True,
            submitter=world.shell.pod("a").charged_user,
        )
    ]
    changed: list[str] = []
    world.shell.pods.on_change.append(lambda pod: changed.append(pod.name))
    pod = replace(world.shell.pod("a"), created=100.0)
    async with background(world.reclaims.run()):
        await eventually(lambda: bool(changed))
        assert changed == ["a", "b"], "their gang is ranked again"
        world.remove_all()
        await eventually(lambda: world.counted("resumed") == 1)
    asked = world.shell.pods.workloads.first_asked
    assert asked(pod) == 30.0, "not before it was created"
    assert asked(replace(pod, namespace="other")) == 100.0, "a forged reference"
    assert asked(replace(pod, workload=replace(JOB, name="x"))) == 100.0, "a forged reference"
    assert asked(replace(pod, submitter=UserName("mallory"))) == 100.0, "not her workload"


async def test_a_pod_elsewhere_that_names_the_workload_does_not_hinder_its_end(
    world: ReclaimWorld,
) -> None:
    forged = world.member("a", "node-02")
    forged["metadata"] |= {"namespace": "other", "uid": "forged", "name": "forged"}
    world.shell.pods.upsert(forged)
    async with background(world.reclaims.run()):
        await world.reclaim("a", "b")
        assert (len(world.api.suspended), world.evicted) == (1, [])
        world.remove_all()
        await eventually(lambda: world.counted("resumed") == 1)


async def test_the_end_of_a_gang_is_known_after_its_pods_are_gone(world: ReclaimWorld) -> None:
    await world.reclaim("a", "b")
    world.remove_all()
    for name in ("lab/g", "lab/low", "lab/a"):
        end = world.shell.outcomes.ends.find(name)
        assert end is not None
        assert (end.why, end.way, end.workload) == (WHY, "suspended", JOB)
