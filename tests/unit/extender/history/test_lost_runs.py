"""Runs that go on after their end, and runs whose end no leader saw."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise

import pytest

from policy.errors import BackendError
from state.history.facts import Certainty, GangFacts
from tests.support.extender.run_world import (
    START,
    RunReplica,
    RunWorld,
    a_bound,
    a_finished,
    a_member,
    a_pair,
)


@pytest.fixture
def world() -> RunWorld:
    return RunWorld()


_FIRST = a_bound(a_member("a"), "node-00", at=1)
_SECOND = a_bound(a_member("b", created=9), "node-00", at=11)
"""Created before the first one ended."""


async def _goes_on(world: RunWorld, *followers: RunReplica) -> None:
    """Let a run be recorded as ended, and go on."""
    for replica in (world.leader, *followers):
        replica.at(10).see(_FIRST)
        replica.see(a_finished(_FIRST, at=10))
    await world.leader.record()
    [run] = await world.runs()
    assert (run.outcome, run.certainty) == ("succeeded", Certainty.KNOWN)
    for replica in (world.leader, *followers):
        replica.at(12).see(_SECOND)
    await world.leader.record()


async def test_a_run_that_goes_on_after_its_end_is_open_again_and_ends_once(
    world: RunWorld,
) -> None:
    await _goes_on(world)
    [run] = await world.runs()
    assert (run.ended_at, run.outcome, run.certainty) == (None, None, Certainty.NO_END)
    assert [one.run for one in await world.history.open_runs(10)] == [run.run]
    world.leader.at(21).see(a_finished(_SECOND, phase="Failed", at=20))
    await world.leader.record()
    [run] = await world.runs()
    assert (run.outcome, run.ended_at) == ("failed", START + timedelta(seconds=20))
    assert sorted(run.members) == ["uid-of-a", "uid-of-b"]


async def test_a_run_that_went_on_and_ended_unseen_is_closed(world: RunWorld) -> None:
    await _goes_on(world)
    fresh = world.replica(epoch=2).at(100)
    fresh.lead()
    assert await fresh.recorder.lost.close() == 1
    await fresh.record()
    [run] = await world.runs()
    assert (run.outcome, run.certainty) == ("succeeded", Certainty.PRESUMED)
    assert run.ended_at == START + timedelta(seconds=100)
    assert run.members["uid-of-b"]["how"] == "deleted"


@pytest.mark.parametrize("looks", [True, False], ids=["at the take-over", "at the end"])
async def test_a_leader_that_knows_fewer_pods_of_a_run_ends_it(
    world: RunWorld, looks: bool
) -> None:
    pods = [a_bound(pod, "node-00", at=1) for pod in a_pair()]
    world.leader.at(2).see(*pods)
    await world.leader.record()
    fresh = world.replica(epoch=2).at(50)
    fresh.see(pods[0])  # the other one was deleted while no extender ran
    fresh.lead()
    await fresh.record()
    if looks:
        assert await fresh.recorder.lost.close() == 0
    fresh.at(60).see(a_finished(pods[0], at=60))
    await fresh.record()
    if not looks:
        await fresh.at(61).recorder.check(is_leading=True)
        await fresh.record()
    [run] = await world.runs()
    assert (run.outcome, run.certainty) == ("succeeded", Certainty.KNOWN)
    assert run.ended_at == START + timedelta(seconds=60)
    assert ("ended" in run.members["uid-of-b"]) is looks
    await fresh.recorder.check(is_leading=True)
    assert fresh.count("runs_unrecorded") == 0


async def test_a_pod_that_is_gone_is_closed_while_its_run_goes_on(world: RunWorld) -> None:
    pods = [a_bound(pod, "node-00", at=1) for pod in a_pair()]
    world.leader.at(2).see(*pods)
    await world.leader.record()
    fresh = world.replica(epoch=2).at(50)
    fresh.see(pods[0])
    fresh.lead()
    await fresh.recorder.lost.close()
    await fresh.record()
    [run] = await world.runs()
    assert run.ended_at is None
    assert run.members["uid-of-b"]["ended"] == (START + timedelta(seconds=50)).isoformat()
    assert "ended" not in run.members["uid-of-a"]


async def test_open_runs_are_read_soon_after_a_take_over_and_then_rarely(world: RunWorld) -> None:
    reads: list[int] = []
    open_runs = world.history.open_runs

    async def noted(limit: int, *, after: str = "") -> Sequence[GangFacts]:
        reads.append(now)
        return await open_runs(limit, after=after)

    world.history.open_runs = noted  # type: ignore[assignment, method-assign]
    for now in range(0, 3600, 10):
        await world.leader.at(now).recorder.lost.close_if_due()
    pauses = [later - one for one, later in pairwise(dict.fromkeys(reads))]
    assert pauses == [10, 20, 40, 80, 160, 320, 600, 600, 600, 600]
    world.leader.begin(epoch=5)
    reads.clear()
    for now in (3600, 3610):
        await world.leader.at(now).recorder.lost.close_if_due()
    assert reads == [3600, 3610]


async def test_open_runs_that_cannot_be_read_are_read_as_soon_as_possible(world: RunWorld) -> None:
    world.leader.see(*a_pair())
    await world.leader.record()
    fresh = world.replica(epoch=2).at(100)
    fresh.lead()
    world.history.is_away = True
    for _ in range(3):
        with pytest.raises(BackendError):
            await fresh.recorder.lost.close_if_due()
    world.history.is_away = False
    await fresh.recorder.lost.close_if_due()
    await fresh.record()
    [run] = await world.runs()
    assert run.outcome == "deleted"
