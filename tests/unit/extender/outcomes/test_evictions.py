"""Pods that end for the sake of others: once, as long as it is wanted, with one Event."""

import asyncio
from collections.abc import Callable

import pytest

from extender.outcomes.evictions import Evictions
from kube.api.binder import PodRef
from kube.api.pod_ender import Ended
from policy.errors import BackendError
from policy.submission import PodUid
from tests.support.background import background
from tests.support.eventually import eventually
from tests.support.extender.gang_pods import bound
from tests.support.extender.shell import Shell

WHY = "gang lab/bert is preempted by gang lab/gpt"
OTHER = "gang lab/bert is preempted by gang lab/llama"


class EndingApi:
    """The API server, on which the pod has been ended before or not."""

    def __init__(self) -> None:
        self.ended = Ended.NOW
        self.failures = 0
        self.asked: list[str] = []

    async def end(self, pod: PodRef, *, why: str, is_wanted: Callable[[], bool]) -> Ended:
        self.asked.append(why)
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise BackendError("away")
        if not is_wanted():
            raise BackendError("need not end any more")
        return self.ended


class EvictionWorld:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("extender.outcomes.evictions._FIRST_PAUSE_SECONDS", 0)
        self.shell = Shell()
        self.shell.pods.upsert(bound("a", "node-00"))
        self.pod = self.shell.pod("a")
        self.enders = EndingApi()
        self.evictions = Evictions(
            self.enders,
            pods=self.shell.pods,
            outcomes=self.shell.outcomes,
            reclaims=self.shell.reclaims(),
            grace=lambda: self.grace,
        )
        self.grace = 0.0

    async def end(self, why: str = WHY, is_wanted: Callable[[], bool] = lambda: True) -> None:
        async with background(self.evictions.run()):
            await self.evictions.end(self.pod, why=why, is_wanted=is_wanted)

    @property
    def counted(self) -> int:
        return int(self.shell.metrics.victims._value.get())

    @property
    def told(self) -> list[tuple[str, str]]:
        return self.shell.events.said("Preempted")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> EvictionWorld:
    return EvictionWorld(monkeypatch)


@pytest.mark.parametrize(
    ("ended", "told", "counted"),
    [(Ended.NOW, 1, 1), (Ended.BEFORE, 1, 0), (Ended.BY_OTHERS, 0, 0)],
    ids=["by us", "by the leader before us", "by its owner"],
)
async def test_an_end_is_told_and_counted_once(
    world: EvictionWorld, ended: Ended, told: int, counted: int
) -> None:
    world.enders.ended = ended
    await world.end()
    assert world.told == [("a", WHY)] * told
    assert all(event.is_unique for event in world.shell.events)
    assert world.counted == counted


async def test_an_end_that_fails_is_tried_again(world: EvictionWorld) -> None:
    world.enders.failures = 3
    await world.end()
    assert (world.enders.asked, world.counted) == ([WHY] * 4, 1)


async def test_a_pod_ends_once_however_often_that_is_asked_for(world: EvictionWorld) -> None:
    for _ in range(2):
        for why in (WHY, OTHER):
            world.evictions.start(world.pod, why=why, is_wanted=lambda: True)
        await world.end()
    assert world.enders.asked == [WHY]
    assert world.pod.uid in world.evictions
    world.shell.pods.remove(bound("a", "node-00"))
    assert PodUid("uid-of-a") not in world.evictions


async def test_a_pod_is_spared_and_may_be_ended_later(world: EvictionWorld) -> None:
    with pytest.raises(BackendError, match="need not end any more"):
        await world.end(is_wanted=lambda: False)
    assert (world.told, world.pod.uid in world.evictions) == ([], False)
    await world.end()
    assert world.told == [("a", WHY)]


async def test_a_pod_that_one_gang_spares_still_ends_for_another(world: EvictionWorld) -> None:
    """The first wants its end no longer when the first write has been made."""
    world.evictions.start(world.pod, why=WHY, is_wanted=lambda: not world.enders.asked)
    await world.end(OTHER)
    assert world.told == [("a", OTHER)]


async def test_a_pod_that_is_gone_meanwhile_is_forgotten(world: EvictionWorld) -> None:
    world.enders.failures = 1_000_000
    async with background(world.evictions.run()):
        ending = asyncio.create_task(
            world.evictions.end(world.pod, why=WHY, is_wanted=lambda: True)
        )
        await eventually(lambda: bool(world.enders.asked))
        world.shell.pods.remove(bound("a", "node-00"))
        with pytest.raises(BackendError):
            await ending
    assert (world.told, world.counted) == ([], 0)


async def test_a_gang_of_which_a_pod_was_ended_ends_whole_though_its_preemptor_goes_away(
    world: EvictionWorld,
) -> None:
    world.shell.pods.upsert(bound("b", "node-01"))
    is_wanted = True
    async with background(world.evictions.run()):
        await world.evictions.end(world.pod, why=WHY, is_wanted=lambda: is_wanted)
        world.enders.failures = 2
        second = world.shell.pod("b")
        world.evictions.start(second, why=WHY, is_wanted=lambda: is_wanted)
        is_wanted = False
        await world.evictions.end(second, why=WHY, is_wanted=lambda: is_wanted)
    assert world.told == [("a", WHY), ("b", WHY)]
    assert world.counted == 2
    for name, node in (("a", "node-00"), ("b", "node-01")):
        world.shell.pods.remove(bound(name, node))
    assert not world.evictions._begun


async def test_new_pods_of_a_gang_that_ends_are_spared_once_its_preemptor_is_gone(
    world: EvictionWorld,
) -> None:
    world.shell.pods.upsert(bound("b", "node-01"))
    async with background(world.evictions.run()):
        await world.evictions.end(world.pod, why=WHY, is_wanted=lambda: True)
        world.shell.pods.upsert(bound("c", "node-02"))  # its owner has created it meanwhile
        await world.evictions.end(world.shell.pod("b"), why=WHY, is_wanted=lambda: False)
        with pytest.raises(BackendError, match="need not end any more"):
            await world.evictions.end(world.shell.pod("c"), why=WHY, is_wanted=lambda: False)
        # They end for another gang, and then whole.
        world.shell.pods.upsert(bound("d", "node-03"))
        await world.evictions.end(world.shell.pod("c"), why=OTHER, is_wanted=lambda: True)
        await world.evictions.end(world.shell.pod("d"), why=OTHER, is_wanted=lambda: False)
    assert world.told == [("a", WHY), ("b", WHY), ("c", OTHER), ("d", OTHER)]


@pytest.fixture
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.outcomes.evictions._LOOK_SECONDS", 0.001)


def _notices(world: EvictionWorld) -> list[tuple[str, str]]:
    return world.shell.events.said("PreemptionNotice")


@pytest.mark.usefixtures("looks_often")
async def test_a_victim_is_told_first_and_runs_on_for_the_grace(world: EvictionWorld) -> None:
    world.grace = 0.05
    async with background(world.evictions.run()):
        ending = asyncio.create_task(
            world.evictions.end(world.pod, why=WHY, is_wanted=lambda: True)
        )
        await eventually(lambda: bool(_notices(world)))
        assert not world.enders.asked
        await ending
    when = "ends in 0 s (`preemption.grace` of the Queues document), unless the preemption is"
    assert _notices(world) == [("a", f"{when} withdrawn: {WHY}")]
    assert world.enders.asked == [WHY]
    assert world.told == [("a", WHY)]


@pytest.mark.parametrize("is_gone", [True, False])
@pytest.mark.usefixtures("looks_often")
async def test_a_victim_that_was_told_is_not_deleted_if_that_is_not_needed_any_more(
    world: EvictionWorld, *, is_gone: bool
) -> None:
    world.grace = 3600
    is_wanted = True
    async with background(world.evictions.run()):
        ending = asyncio.create_task(
            world.evictions.end(world.pod, why=WHY, is_wanted=lambda: is_wanted)
        )
        await eventually(lambda: bool(_notices(world)))
        if is_gone:
            world.shell.pods.remove(bound("a", "node-00"))
        else:
            is_wanted = False
        with pytest.raises(BackendError):
            await ending
    assert not world.enders.asked


async def test_a_pod_that_ends_for_another_cause_than_preemption_gets_no_notice(
    world: EvictionWorld,
) -> None:
    world.grace = 3600
    async with background(world.evictions.run()):
        world.evictions.start(world.pod, why="half bound", is_wanted=lambda: True)
        await eventually(lambda: world.enders.asked == ["half bound"])
    assert not _notices(world)
