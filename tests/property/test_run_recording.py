"""Any history of take-overs, crashes and lost records: each attempt of a gang is one run, ended.

Two replicas follow the pods of one gang; each may be killed and started again, with what it had not
written lost or written late. The history may be unavailable for any time.
"""

import asyncio
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from state.log.records import DecisionRecord
from tests.support.examples import at_most_in_ci
from tests.support.extender.run_world import (
    RunReplica,
    RunWorld,
    a_bound,
    a_finished,
    a_member,
)
from tests.support.kube.pods import PodBuilder

_STEPS = 60


class Chaos:
    """The pods of one gang, two replicas, and a store that may be away."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.world = RunWorld()
        self.epoch = 1
        self.now = 0
        self.pods: dict[str, PodBuilder] = {}
        self.attempts: list[list[str]] = []
        self.replicas: list[RunReplica | None] = [self.world.leader, self._fresh()]
        self.leader: int | None = 0
        self.late: list[DecisionRecord] = []
        """Records of killed processes that are written at the end."""

    def _fresh(self) -> RunReplica:
        self.epoch += 1
        return self.world.replica(epoch=self.epoch).at(self.now)

    def live(self) -> list[RunReplica]:
        return [one for one in self.replicas if one is not None]

    def tell(self, name: str, pod: PodBuilder) -> None:
        self.pods[name] = pod
        for replica in self.live():
            replica.at(self.now).see(pod)

    # -- what happens

    def gang_starts(self) -> None:
        if any(pod["status"]["phase"] not in ("Succeeded", "Failed") for pod in self.pods.values()):
            return
        number = len(self.attempts)
        self.attempts.append([f"p{number}-{index}" for index in range(2)])
        for name in self.attempts[-1]:
            self.tell(name, a_member(name, created=self.now).gated())

    def pod_changes(self) -> None:
        if not self.pods:
            return
        name = self.dice.choice(sorted(self.pods))
        pod = self.pods[name]
        match pod["status"]["phase"]:
            case "Pending":
                self.tell(name, _ungated(a_bound(pod, "node-00", at=self.now)))
            case "Running":
                phase = self.dice.choice(["Succeeded", "Failed"])
                self.tell(name, a_finished(pod, phase=phase, at=self.now))

    def pod_is_deleted(self) -> None:
        if not self.pods:
            return
        name = self.dice.choice(sorted(self.pods))
        pod = self.pods.pop(name)
        for replica in self.live():
            replica.at(self.now).shell.pods.remove(pod)

    def replica_is_killed(self) -> None:
        number = self.dice.randrange(2)
        replica = self.replicas[number]
        if replica is None:
            return
        if self.dice.random() < 0.5:
            self.late += list(replica.log._buffer)
        self.replicas[number] = None
        self.leader = None if self.leader == number else self.leader

    def replica_starts(self) -> None:
        if None in self.replicas:
            number = self.replicas.index(None)
            replica = self.replicas[number] = self._fresh()
            replica.shell.pods.replace(list(self.pods.values()))

    def leader_is_chosen(self) -> None:
        number = self.dice.randrange(2)
        replica = self.replicas[number]
        if self.leader is None and replica is not None:
            self.epoch += 1
            replica.begin(self.epoch)
            self.leader = number

    def database_changes(self) -> None:
        self.world.store.is_away = self.world.history.is_away = self.dice.random() < 0.5

    async def work(self) -> None:
        """What replicas do all the time, here at random."""
        for number, replica in enumerate(self.replicas):
            if replica is None or self.dice.random() < 0.3:
                continue
            replica.at(self.now)
            is_leading = number == self.leader
            if is_leading:
                while replica.recorder.record():
                    pass
            if self.world.store.is_away:
                continue
            await replica.log.flush()
            await replica.recorder.check(is_leading=is_leading)
            if is_leading:
                await replica.recorder.lost.close()

    async def settle(self) -> None:
        """All is well again; late records arrive, and the leader compares some times."""
        self.world.store.is_away = self.world.history.is_away = False
        for name in list(self.pods):
            self.now += 1
            pod = self.pods.pop(name)
            for replica in self.live():
                replica.at(self.now).shell.pods.remove(pod)
        while None in self.replicas:
            self.replica_starts()
        while self.leader is None:
            self.leader_is_chosen()
        await self.world.store.insert(self.late)
        leader = self.replicas[self.leader]
        assert leader is not None
        known = {str(pod.seen.name) for run in leader.recorder.book for pod in run.pods.values()}
        for _ in range(6):
            self.now += 10
            await leader.at(self.now).record()
            await leader.recorder.check(is_leading=True)
            await leader.recorder.lost.close()
        await leader.record()
        assert known <= self.recorded()

    def recorded(self) -> set[str]:
        """The pods that the history has."""
        runs = self.world.store.history.values()
        return {member["name"] for run in runs for member in run.members.values()}


def _ungated(pod: PodBuilder) -> PodBuilder:
    pod["spec"].pop("schedulingGates", None)
    return pod


async def _play(seed: int) -> Chaos:
    chaos = Chaos(seed)
    happenings = [
        chaos.gang_starts, chaos.gang_starts, chaos.pod_changes, chaos.pod_changes,
        chaos.pod_changes, chaos.pod_is_deleted, chaos.replica_is_killed, chaos.replica_starts,
        chaos.replica_starts, chaos.leader_is_chosen, chaos.leader_is_chosen,
        chaos.database_changes,
    ]  # fmt: skip
    for _ in range(_STEPS):
        chaos.now += 1
        chaos.dice.choice(happenings)()
        await chaos.work()
    await chaos.settle()
    return chaos


@settings(max_examples=at_most_in_ci(200))
@given(seed=st.integers(0, 10**9))
def test_each_attempt_that_a_leader_recorded_is_one_run_that_has_ended(seed: int) -> None:
    chaos = asyncio.run(_play(seed))
    history = chaos.world.store.history.values()
    found = [sorted(member["name"] for member in run.members.values()) for run in history]
    recorded = chaos.recorded()
    expected = [[name for name in attempt if name in recorded] for attempt in chaos.attempts]
    assert sorted(found) == sorted(filter(None, expected))
    assert all(run.ended_at is not None for run in history)
