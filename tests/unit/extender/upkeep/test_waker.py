"""Refused pods that would fit now are shown to kube-scheduler again."""

import asyncio

import pytest

from extender.cells.model import Wait
from extender.cluster.journal import DecisionContext
from extender.upkeep.waker import Waker
from kube.api.binder import PodRef
from policy.submission import NodeName
from state.log.records import RowKind
from tests.support.background import background
from tests.support.eventually import eventually
from tests.support.extender.gang_pods import bound, member
from tests.support.extender.shell import Shell

NODES = [NodeName(f"node-{index:02}") for index in range(4)]


class Woken(list[str]):
    """The pods that kube-scheduler was made to look at."""

    async def wake(self, pod: PodRef) -> None:
        self.append(pod.name)


class WakerWorld:
    """A full cluster, and a pod that kube-scheduler asked about."""

    def __init__(self) -> None:
        self.shell = Shell()
        self.shell.recover()
        for name, node in zip("abcd", NODES, strict=True):
            self.shell.pods.upsert(bound(name, node, gang=name, size=1))
        self.late = member("late", gang="late", size=1)
        self._refuse()
        self.woken = Woken()
        self.waker = Waker(
            cluster=self.shell.cluster,
            pods=self.shell.pods,
            waiting=self.shell.waiting,
            to_request=self.shell.to_request,
            waker=self.woken,
            metrics=self.shell.metrics,
            clock=self.shell.clock,
        )

    def _refuse(self) -> None:
        pod = self.shell.pods.read(self.late)
        assert pod is not None
        context = DecisionContext(kind=RowKind.PLACEMENT, now=0.0)
        request = self.shell.to_request(pod)
        decision = self.shell.cluster.decide(request, candidate_nodes=NODES, context=context)
        assert isinstance(decision, Wait)
        self.shell.outcomes.pod_decided(pod, decision, offered=NODES)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> WakerWorld:
    monkeypatch.setattr("extender.upkeep.waker._EVERY_SECONDS", 0)
    return WakerWorld()


async def test_a_refused_pod_is_woken_once_when_it_would_fit(world: WakerWorld) -> None:
    world.shell.pods.upsert(world.late)
    async with background(world.waker.run()):
        await asyncio.sleep(0)
        assert world.woken == []
        world.shell.pods.remove(bound("a", NODES[0], gang="a", size=1))
        await eventually(lambda: bool(world.woken))
        for _ in range(3):
            await asyncio.sleep(0)
    assert world.woken == ["late"]


async def test_a_pod_that_the_watch_shows_after_room_has_come_is_woken(world: WakerWorld) -> None:
    world.shell.pods.remove(bound("a", NODES[0], gang="a", size=1))
    async with background(world.waker.run()):
        for _ in range(3):
            await asyncio.sleep(0)
        assert world.woken == []
        world.shell.pods.upsert(world.late)
        await eventually(lambda: bool(world.woken))
    assert world.woken == ["late"]
