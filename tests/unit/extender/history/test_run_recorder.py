"""Runs are recorded once, whatever leader saw which part of them."""

from datetime import timedelta

import pytest

from extender.history import run_recorder
from extender.history.seen_pods import bounded_labels
from policy.errors import BackendError
from state.history.facts import Certainty
from tests.support.extender.run_world import (
    START,
    RunWorld,
    a_bound,
    a_finished,
    a_member,
    a_pair,
)

_WHY = "gang lab/g is preempted by gang lab/gpt (priority 9 in VC lab): …"


@pytest.fixture
def world() -> RunWorld:
    return RunWorld()


async def test_a_life_of_a_gang_is_one_run(world: RunWorld) -> None:
    leader = world.leader
    pods = a_pair()
    leader.at(1).see(*(pod.gated() for pod in pods))
    await leader.record()
    [run] = await world.runs()
    assert (run.leaf_count, run.started_at, run.released_at) == (16, None, None)
    bound = [a_bound(pod, f"node-0{n}", at=60) for n, pod in enumerate(pods)]
    leader.at(61).see(*bound)
    await leader.record()
    leader.at(121).see(*(a_finished(pod, at=120) for pod in bound))
    await leader.record()
    [run] = await world.runs()
    assert (run.gang, run.user_name, run.vc) == ("lab/g", "alice", "lab")
    assert (run.requested_class, run.granted_class, run.image) == ("prod", "test", "train:1")
    assert (run.asked_at, run.admitted_at) == (START, START)
    assert (run.leaf_count, run.member_count, run.restarts) == (16, 2, 0)
    assert run.started_at == run.held_from == START + timedelta(seconds=60)
    assert run.released_at == START + timedelta(seconds=61)
    assert run.ended_at == START + timedelta(seconds=120)
    assert (run.outcome, run.certainty) == ("succeeded", Certainty.KNOWN)
    assert run.nodes == ("node-00", "node-01")
    assert {member["how"] for member in run.members.values()} == {"succeeded"}
    assert leader.count("runs_recorded_total", outcome="succeeded") == 1


async def test_a_run_is_forgotten_once_it_is_recorded(world: RunWorld) -> None:
    leader = world.leader
    leader.see(a_finished(a_bound(a_member("a"), "node-00", at=1), at=9))
    leader.shell.pods.remove(a_member("b"))
    assert leader.count("runs_unrecorded") == 1
    await leader.recorder.check(is_leading=True)  # it was over when it was first seen
    await leader.record()
    assert len(await world.runs()) == 1
    await leader.recorder.check(is_leading=True)
    assert leader.count("runs_unrecorded") == 0


async def test_a_run_that_is_kept_no_more_is_not_recorded_again(world: RunWorld) -> None:
    """Its pod may be there for years; the sums of days still have its hours."""
    pod = a_finished(a_bound(a_member("a"), "node-00", at=1), at=9)
    for days, count in ((401, 0), (399, 1)):
        replica = world.replica().at(days * 86_400)
        replica.lead()
        replica.see(pod)
        await replica.recorder.check(is_leading=True)
        await replica.record()
        assert len(await world.runs()) == count
        assert replica.count("runs_unrecorded") == count


async def test_a_run_that_the_log_has_lost_is_described_again(world: RunWorld) -> None:
    leader = world.leader
    pod = a_bound(a_member("a"), "node-00", at=1)
    leader.see(pod)
    leader.see(a_finished(pod, at=9))
    while leader.recorder.record():
        pass
    leader.log._buffer.clear()  # what a full log does
    for _ in range(run_recorder._PATIENCE_CHECKS):
        await leader.recorder.check(is_leading=True)
    await leader.record()
    [run] = await world.runs()
    assert run.outcome == "succeeded"
    assert leader.count("runs_repeated_total") == 1


async def test_a_standby_repeats_what_the_leader_before_it_did_not_record(world: RunWorld) -> None:
    standby = world.replica(epoch=2)
    for replica in (world.leader, standby):
        replica.see(*a_pair())
    await world.leader.record()
    for replica in (world.leader, standby):
        for pod in a_pair():
            replica.at(10).shell.pods.remove(pod)
    standby.lead()
    await standby.at(20).record()
    [run] = await world.runs()
    assert (run.outcome, run.certainty) == ("deleted", Certainty.KNOWN)
    assert run.ended_at == START + timedelta(seconds=10)
    await world.leader.record()  # its records arrive late
    assert await world.runs() == [run]


async def test_runs_that_ended_while_no_extender_ran_are_told_in_one_line(
    world: RunWorld, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b"):
        pod = a_member(name).in_gang(name, size=1)
        world.leader.see(a_bound(pod, "node-00", at=5))
    await world.leader.record()
    fresh = world.replica(epoch=2).at(100)
    fresh.lead()
    assert await fresh.recorder.lost.close() == 2
    [told] = [vars(one) for one in caplog.records if one.message == "runs ended unseen"]
    assert (told["runs"], sorted(told["gangs"])) == (2, ["lab/a", "lab/b"])


async def test_a_run_that_ended_while_no_extender_ran_is_closed(world: RunWorld) -> None:
    world.leader.see(*(a_bound(pod, "node-00", at=5) for pod in a_pair()))
    await world.leader.record()
    fresh = world.replica(epoch=2).at(100)
    fresh.lead()
    assert await fresh.recorder.lost.close() == 1
    await fresh.record()
    [run] = await world.runs()
    assert (run.outcome, run.certainty) == ("deleted", Certainty.PRESUMED)
    assert run.ended_at == START + timedelta(seconds=100)
    assert await fresh.recorder.lost.close() == 0
    assert fresh.count("runs_presumed_total") == 1
    # A record of a leader that saw the end arrives late, and counts.
    for pod in a_pair():
        last = a_finished(a_bound(pod, "node-00", at=5), at=50)
        world.leader.at(51).shell.pods.remove(last)
    await world.leader.record()
    [run] = await world.runs()
    assert (run.outcome, run.certainty) == ("succeeded", Certainty.KNOWN)
    assert run.ended_at == START + timedelta(seconds=50)


async def test_a_run_that_cellgate_was_ending_when_all_extenders_died_was_preempted(
    world: RunWorld,
) -> None:
    leader = world.leader
    leader.see(*(a_bound(pod, "node-00", at=5) for pod in a_pair()))
    leader.shell.outcomes.pod_suspended(leader.shell.pod("a"), why=_WHY)
    await leader.record()
    fresh = world.replica(epoch=2)
    fresh.lead()
    await fresh.at(100).recorder.lost.close()
    await fresh.record()
    [run] = await world.runs()
    assert (run.outcome, run.preempted_for, run.reason) == ("preempted", "lab/gpt", _WHY)


async def test_a_preempted_gang_that_starts_again_is_two_runs_over_a_take_over(
    world: RunWorld,
) -> None:
    leader, standby = world.leader, world.replica(epoch=2)
    first = [a_bound(pod, "node-00", at=5) for pod in a_pair()]
    for replica in (leader, standby):
        replica.at(6).see(*first)
    leader.at(10).shell.outcomes.pod_suspended(leader.shell.pod("a"), why=_WHY)
    leader.shell.outcomes.pod_suspended(leader.shell.pod("b"), why=_WHY)
    await leader.record()
    second = a_pair(created=20, suffix="2")
    for pod in first:
        standby.at(15).shell.pods.remove(pod)
    standby.at(16).lead()
    standby.at(21).see(*second)
    standby.at(30).see(*(a_finished(a_bound(pod, "node-01", at=22), at=29) for pod in second))
    await standby.record()
    assert [run.outcome for run in await world.runs()] == ["deleted", "succeeded"]
    await standby.at(40).recorder.check(
        is_leading=True
    )  # it learns why the leader before it ended them
    await standby.record()
    one, two = await world.runs()
    assert (one.outcome, sorted(one.members)) == ("preempted", ["uid-of-a", "uid-of-b"])
    assert one.preempted_for == "lab/gpt"
    assert (two.outcome, sorted(two.members)) == ("succeeded", ["uid-of-a2", "uid-of-b2"])


async def test_pods_that_a_relist_misses_are_gone(world: RunWorld) -> None:
    leader = world.leader
    leader.see(*a_pair())
    leader.at(9).shell.pods.replace([])
    await leader.record()
    [run] = await world.runs()
    assert (run.outcome, run.certainty) == ("deleted", Certainty.PRESUMED)


async def test_a_history_that_is_away_is_asked_again(world: RunWorld) -> None:
    leader = world.leader
    leader.see(*a_pair())
    leader.shell.pods.replace([])
    world.history.is_away = True
    with pytest.raises(BackendError):
        await leader.recorder.check(is_leading=True)
    assert leader.count("runs_unrecorded") == 1


def test_labels_are_bounded_and_those_of_controllers_left_out() -> None:
    labels = {f"z{number:03}": "x" for number in range(100)} | {"controller-uid": "u"}
    kept = bounded_labels({"topology.kubernetes.io/zone": "z", **labels})
    assert len(kept) == 32
    assert {"controller-uid", "topology.kubernetes.io/zone"}.isdisjoint(kept)
