"""Runs are recorded once, whatever leader saw which part of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from extender.cluster.journal import LogJournal
from extender.history import run_recorder
from extender.history.run_recorder import RunRecorder
from extender.history.seen_pods import bounded_labels, seen_by
from kube import marks
from policy.errors import BackendError
from service.clock import Clock
from state.history.facts import Certainty, GangFacts
from state.history.runs import RunFilter
from state.log.log import DecisionLog
from tests.support.extender.group_sizes import GroupSizes
from tests.support.extender.shell import Shell
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.twins.history import MemoryHistory
from tests.support.twins.log import MemoryDecisions

_START = datetime(2026, 3, 1, tzinfo=UTC)
_WHY = "gang lab/g is preempted by gang lab/gpt (priority 9 in VC lab): …"


class Replica:
    """One extender that follows pods, with its own log."""

    def __init__(self, store: MemoryDecisions, history: MemoryHistory, *, epoch: int = 1) -> None:
        self.shell = Shell()
        self.log = DecisionLog(store)
        self.now = _START
        clock = Clock(monotonic=lambda: 0.0, now=lambda: self.now)
        self._clock = clock
        self.registry = CollectorRegistry()
        self.recorder = RunRecorder(
            cluster=self.shell.cluster,
            pods=self.shell.pods,
            outcomes=self.shell.outcomes,
            to_seen=seen_by(self.shell.cluster, GroupSizes()),
            history=history,
            epoch=lambda: epoch,
            clock=clock,
            registry=self.registry,
        )
        self._epoch = epoch

    def lead(self) -> None:
        self.shell.cluster.write_to(LogJournal(self.log, epoch=self._epoch, clock=self._clock))
        self.recorder.book.mark([run for run in self.recorder.book if run.was_live])

    def at(self, seconds: float) -> "Replica":
        self.now = _START + timedelta(seconds=seconds)
        return self

    def see(self, *pods: PodBuilder) -> None:
        for pod in pods:
            self.shell.pods.upsert(pod)

    async def record(self) -> None:
        while self.recorder.record():
            pass
        await self.log.flush()

    def count(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"cellgate_extender_{name}", labels) or 0.0


class World:
    def __init__(self) -> None:
        self.store = MemoryDecisions()
        self.history = MemoryHistory(self.store.history)
        self.leader = self.replica()
        self.leader.lead()

    def replica(self, *, epoch: int = 1) -> Replica:
        return Replica(self.store, self.history, epoch=epoch)

    async def runs(self) -> list[GangFacts]:
        found = await self.history.find(RunFilter(), 100)
        return [stored.facts for stored in found][::-1]


@pytest.fixture
def world() -> World:
    return World()


def _time(seconds: float) -> str:
    return (_START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def _member(name: str, *, created: float = 0, **status: Any) -> PodBuilder:
    pod = a_pod(name).with_gpus(8).in_vc("lab").in_gang("g", size=2).of_class("test")
    pod = pod.submitted_by("alice").annotated(marks.DECISION_ANNOTATION, "d1")
    pod = pod.annotated(marks.REQUESTED_CLASS_ANNOTATION, "prod")
    pod["metadata"]["creationTimestamp"] = _time(created)
    pod["status"] |= status
    return pod


def _bound(pod: PodBuilder, node: str, *, at: float) -> PodBuilder:
    pod = pod.bound_to(node)
    pod["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": _time(at)}
    ]
    return pod


def _finished(pod: PodBuilder, *, phase: str = "Succeeded", at: float) -> PodBuilder:
    done = {"terminated": {"startedAt": _time(at - 1), "finishedAt": _time(at), "exitCode": 0}}
    pod = PodBuilder(pod)
    pod["status"] = pod["status"] | {
        "phase": phase,
        "containerStatuses": [{"name": "main", "state": done}],
    }
    return pod


def _pair(*, created: float = 0, suffix: str = "") -> list[PodBuilder]:
    return [_member(f"a{suffix}", created=created), _member(f"b{suffix}", created=created)]


async def test_a_life_of_a_gang_is_one_run(world: World) -> None:
    leader = world.leader
    pods = _pair()
    leader.at(1).see(*(pod.gated() for pod in pods))
    await leader.record()
    [run] = await world.runs()
    assert (run.leaf_count, run.started_at, run.released_at) == (16, None, None)
    bound = [_bound(pod, f"node-0{n}", at=60) for n, pod in enumerate(pods)]
    leader.at(61).see(*bound)
    await leader.record()
    leader.at(121).see(*(_finished(pod, at=120) for pod in bound))
    await leader.record()
    [run] = await world.runs()
    assert (run.gang, run.user_name, run.vc) == ("lab/g", "alice", "lab")
    assert (run.requested_class, run.granted_class, run.image) == ("prod", "test", "train:1")
    assert (run.asked_at, run.admitted_at) == (_START, _START)
    assert (run.leaf_count, run.member_count, run.restarts) == (16, 2, 0)
    assert run.started_at == run.held_from == _START + timedelta(seconds=60)
    assert run.released_at == _START + timedelta(seconds=61)
    assert run.ended_at == _START + timedelta(seconds=120)
    assert (run.outcome, run.certainty) == ("succeeded", Certainty.KNOWN)
    assert run.nodes == ("node-00", "node-01")
    assert {member["how"] for member in run.members.values()} == {"succeeded"}
    assert leader.count("runs_recorded_total", outcome="succeeded") == 1


async def test_a_run_is_forgotten_once_it_is_recorded(world: World) -> None:
    leader = world.leader
    leader.see(_finished(_bound(_member("a"), "node-00", at=1), at=9))
    leader.shell.pods.remove(_member("b"))
    assert leader.count("runs_unrecorded") == 1
    await leader.recorder.check(is_leading=True)  # it was over when it was first seen
    await leader.record()
    assert len(await world.runs()) == 1
    await leader.recorder.check(is_leading=True)
    assert leader.count("runs_unrecorded") == 0


async def test_a_run_that_the_log_has_lost_is_described_again(world: World) -> None:
    leader = world.leader
    pod = _bound(_member("a"), "node-00", at=1)
    leader.see(pod)
    leader.see(_finished(pod, at=9))
    while leader.recorder.record():
        pass
    leader.log._buffer.clear()  # what a full log does
    for _ in range(run_recorder._PATIENCE_CHECKS):
        await leader.recorder.check(is_leading=True)
    await leader.record()
    [run] = await world.runs()
    assert run.outcome == "succeeded"
    assert leader.count("runs_repeated_total") == 1


async def test_a_standby_repeats_what_the_leader_before_it_did_not_record(world: World) -> None:
    standby = world.replica(epoch=2)
    for replica in (world.leader, standby):
        replica.see(*_pair())
    await world.leader.record()
    for replica in (world.leader, standby):
        for pod in _pair():
            replica.at(10).shell.pods.remove(pod)
    standby.lead()
    await standby.at(20).record()
    [run] = await world.runs()
    assert (run.outcome, run.certainty) == ("deleted", Certainty.KNOWN)
    assert run.ended_at == _START + timedelta(seconds=10)
    await world.leader.record()  # its records arrive late
    assert await world.runs() == [run]


async def test_a_run_that_ended_while_no_extender_ran_is_closed(world: World) -> None:
    world.leader.see(*(_bound(pod, "node-00", at=5) for pod in _pair()))
    await world.leader.record()
    fresh = world.replica(epoch=2).at(100)
    fresh.lead()
    assert await fresh.recorder.close_lost() == 1
    await fresh.record()
    [run] = await world.runs()
    assert (run.outcome, run.certainty) == ("deleted", Certainty.PRESUMED)
    assert run.ended_at == _START + timedelta(seconds=100)
    assert await fresh.recorder.close_lost() == 0
    assert fresh.count("runs_presumed_total") == 1
    # A record of a leader that saw the end arrives late, and counts.
    for pod in _pair():
        last = _finished(_bound(pod, "node-00", at=5), at=50)
        world.leader.at(51).shell.pods.remove(last)
    await world.leader.record()
    [run] = await world.runs()
    assert (run.outcome, run.certainty) == ("succeeded", Certainty.KNOWN)
    assert run.ended_at == _START + timedelta(seconds=50)


async def test_a_run_that_cellgate_was_ending_when_all_extenders_died_was_preempted(
    world: World,
) -> None:
    leader = world.leader
    leader.see(*(_bound(pod, "node-00", at=5) for pod in _pair()))
    leader.shell.outcomes.pod_suspended(leader.shell.pod("a"), why=_WHY)
    await leader.record()
    fresh = world.replica(epoch=2)
    fresh.lead()
    await fresh.at(100).recorder.close_lost()
    await fresh.record()
    [run] = await world.runs()
    assert (run.outcome, run.preempted_for, run.reason) == ("preempted", "lab/gpt", _WHY)


async def test_a_preempted_gang_that_starts_again_is_two_runs_over_a_take_over(
    world: World,
) -> None:
    leader, standby = world.leader, world.replica(epoch=2)
    first = [_bound(pod, "node-00", at=5) for pod in _pair()]
    for replica in (leader, standby):
        replica.at(6).see(*first)
    leader.at(10).shell.outcomes.pod_suspended(leader.shell.pod("a"), why=_WHY)
    leader.shell.outcomes.pod_suspended(leader.shell.pod("b"), why=_WHY)
    await leader.record()
    second = _pair(created=20, suffix="2")
    for pod in first:
        standby.at(15).shell.pods.remove(pod)
    standby.at(16).lead()
    standby.at(21).see(*second)
    standby.at(30).see(*(_finished(_bound(pod, "node-01", at=22), at=29) for pod in second))
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


async def test_pods_that_a_relist_misses_are_gone(world: World) -> None:
    leader = world.leader
    leader.see(*_pair())
    leader.at(9).shell.pods.replace([])
    await leader.record()
    [run] = await world.runs()
    assert (run.outcome, run.certainty) == ("deleted", Certainty.PRESUMED)


async def test_a_history_that_is_away_is_asked_again(world: World) -> None:
    leader = world.leader
    leader.see(*_pair())
    leader.shell.pods.replace([])
    world.history.is_away = True
    with pytest.raises(BackendError):
        await leader.recorder.check(is_leading=True)
    assert leader.count("runs_unrecorded") == 1


def test_labels_are_bounded_and_those_of_controllers_left_out() -> None:
    labels = {f"l{number:03}": "x" for number in range(100)} | {"controller-uid": "u"}
    kept = bounded_labels(labels)
    assert len(kept) == 32
    assert "controller-uid" not in kept
