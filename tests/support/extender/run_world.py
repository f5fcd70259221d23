"""Replicas of the extender that follow one gang and record its runs, without a network."""

from datetime import UTC, datetime, timedelta
from typing import Any

from prometheus_client import CollectorRegistry

from extender.cluster.journal import LogJournal
from extender.history.run_recorder import RunRecorder
from extender.history.seen_pods import seen_by
from kube import marks
from service.clock import Clock
from state.history.facts import GangFacts
from state.history.runs import RunFilter
from state.log.log import DecisionLog
from tests.support.extender.group_sizes import GroupSizes
from tests.support.extender.shell import Shell
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.twins.history import MemoryHistory
from tests.support.twins.log import MemoryDecisions

START = datetime(2026, 3, 1, tzinfo=UTC)


class RunReplica:
    """One extender that follows pods, with its own log."""

    def __init__(self, store: MemoryDecisions, history: MemoryHistory, *, epoch: int = 1) -> None:
        self.shell = Shell()
        self.log = DecisionLog(store)
        self.now = START
        clock = Clock(monotonic=lambda: self.now.timestamp(), now=lambda: self.now)
        self._clock = clock
        self.registry = CollectorRegistry()
        self.recorder = RunRecorder(
            cluster=self.shell.cluster,
            pods=self.shell.pods,
            outcomes=self.shell.outcomes,
            to_seen=seen_by(self.shell.cluster, GroupSizes()),
            history=history,
            epoch=lambda: self._epoch,
            clock=clock,
            registry=self.registry,
        )
        self._epoch = epoch

    def lead(self) -> None:
        """Begin a leadership term."""
        self.shell.cluster.write_to(LogJournal(self.log, epoch=self._epoch, clock=self._clock))
        self.recorder.book.mark([run for run in self.recorder.book if run.was_live])

    def begin(self, epoch: int) -> None:
        """Begin a leadership term of this epoch."""
        self._epoch = epoch
        self.lead()

    def at(self, seconds: float) -> "RunReplica":
        self.now = START + timedelta(seconds=seconds)
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


class RunWorld:
    """A leader, a store and its history."""

    def __init__(self) -> None:
        self.store = MemoryDecisions()
        self.history = MemoryHistory(self.store.history)
        self.leader = self.replica()
        self.leader.lead()

    def replica(self, *, epoch: int = 1) -> RunReplica:
        return RunReplica(self.store, self.history, epoch=epoch)

    async def runs(self) -> list[GangFacts]:
        found = await self.history.find(RunFilter(), 100)
        return [stored.facts for stored in found][::-1]


def time_text(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def a_member(name: str, *, created: float = 0, **status: Any) -> PodBuilder:
    pod = a_pod(name).with_gpus(8).in_vc("lab").in_gang("g", size=2).of_class("test")
    pod = pod.submitted_by("alice").annotated(marks.DECISION_ANNOTATION, "d1")
    pod = pod.annotated(marks.REQUESTED_CLASS_ANNOTATION, "prod")
    pod["metadata"]["creationTimestamp"] = time_text(created)
    pod["status"] |= status
    return pod


def a_bound(pod: PodBuilder, node: str, *, at: float) -> PodBuilder:
    pod = pod.bound_to(node)
    pod["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": time_text(at)}
    ]
    return pod


def a_finished(pod: PodBuilder, *, phase: str = "Succeeded", at: float) -> PodBuilder:
    done = {
        "terminated": {"startedAt": time_text(at - 1), "finishedAt": time_text(at), "exitCode": 0}
    }
    pod = PodBuilder(pod)
    pod["status"] = pod["status"] | {
        "phase": phase,
        "containerStatuses": [{"name": "main", "state": done}],
    }
    return pod


def a_pair(*, created: float = 0, suffix: str = "") -> list[PodBuilder]:
    return [a_member(f"a{suffix}", created=created), a_member(f"b{suffix}", created=created)]
