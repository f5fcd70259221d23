"""Follows pods, records runs in the history, and repeats what is not recorded.

    pods ──▶ run book ──▶ decision log ──▶ Postgres      by the leader, four times a second
               ▲                              │
               └── recorded? ◀────────────────┘          by every replica, every few seconds

A callback of the feeds only notes what a pod says. Runs that changed are described a little later,
many at once, off the path of any answer. A run that has ended stays in memory until the history has
its end, so a leader that loses its records, or dies, loses nothing that another replica has seen.

A new leader describes all runs that it knows. Then it ends the runs of the history whose pods are
gone (`lost_runs`).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final, NoReturn, Protocol

from prometheus_client import CollectorRegistry

from extender.cells.model import Preempt
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.history.lost_runs import LostRuns
from extender.history.run_facts import build_facts, stamp_of
from extender.history.run_metrics import RunMetrics
from extender.history.seen_pods import ToSeen
from extender.outcomes.outcomes import Outcomes
from extender.runs.model import NEVER, Cause, Run
from extender.runs.run_book import RunBook
from kube.api.client import Object
from kube.lives.pod_lives import read_life
from kube.read.managed_pod import ManagedPod
from policy.errors import BackendError
from policy.submission import GangKey, PodUid
from service.clock import Clock
from state.history.facts import Certainty, GangFacts, Prediction
from state.history.runs import RecordedPod, RunHistory
from state.log.records import RowKind

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 0.25
_AT_ONCE: Final = 100
"""Pods whose runs are described in one step, while other steps wait: some milliseconds."""
_CHECK_SECONDS: Final = 10.0
_PAGE: Final = 1000
_DAY_SECONDS: Final = 86_400.0
_PATIENCE_CHECKS: Final = 3
"""A run that is not in the history after so many checks is described again."""


class Predictions(Protocol):
    """Follows runs as they are recorded, and predicts."""

    def follow(
        self, gang: GangKey, facts: GangFacts, *, stamp: str, deadline: float | None = None
    ) -> Mapping[str, Prediction]:
        """A run changed; return what was predicted about it.

        `deadline` is how many seconds after its start its workload is ended.
        """


class RunRecorder:
    """Records the runs of all gangs."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        outcomes: Outcomes,
        to_seen: ToSeen,
        history: RunHistory | None,
        epoch: Callable[[], int],
        clock: Clock,
        registry: CollectorRegistry,
    ) -> None:
        """Without a history, which only tests do, ended runs are kept in memory for a while."""
        self.predictions: Predictions | None = None
        self.book = RunBook()
        self._cluster = cluster
        self._to_seen = to_seen
        self._history = history
        self._epoch = epoch
        self._clock = clock
        self._waits: dict[str, int] = {}
        """Runs that have ended and are not in the history, by the number of checks so far."""
        self._metrics = RunMetrics(registry, self.book)
        if history is not None:
            self.lost = LostRuns(
                history,
                book=self.book,
                epoch=epoch,
                stamp=self.stamp,
                clock=clock,
                write=self._write,
            )
            self.lost.on_presumed = self._metrics.presumed.inc
        pods.on_seen.append(self._see)
        pods.on_gone.append(self._lose)
        pods.on_listed.append(self._retain)
        outcomes.on_ended.append(self._note_cause)
        outcomes.on_victims.append(self._note_victims)

    # -- observations

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _see(self, pod: ManagedPod, obj: Object) -> None:
        self.book.see(self._to_seen(pod, obj), now=self._now())

    def _lose(self, obj: Object) -> None:
        uid = PodUid(obj["metadata"]["uid"])
        if self.book.knows(uid):
            self.book.see_last(uid, read_life(obj), now=self._now())

    def _retain(self, there: Collection[PodUid]) -> None:
        self.book.retain(there, now=self._now())

    def _note_cause(self, pod: ManagedPod, why: str) -> None:
        self.book.note_cause(pod.uid, Cause(at=self._now(), why=why))

    def note_charged(self, gang: GangKey) -> None:
        """A gang that waited for quota was charged."""
        self.book.note_admitted(gang, now=self._now())

    def _note_victims(self, decision: Preempt) -> None:
        self.book.note_victims(decision.victims, preemptor=str(decision.request.gang))

    # -- the leader's records

    async def run(self) -> NoReturn:
        """Describe all runs, then each that changes, until cancelled."""
        self.book.mark([run for run in self.book if run.was_live])
        while True:
            is_more = self.record()
            await asyncio.sleep(0 if is_more else _EVERY_SECONDS)

    def record(self) -> bool:
        """Describe some of the runs that changed; False if there were none."""
        taken, stamp = self.book.take_changed(_AT_ONCE), self.stamp()
        for run, pods in taken:
            facts = build_facts(run, pods, stamp=stamp)
            if self.predictions is not None:
                told = self.predictions.follow(
                    run.gang, facts, stamp=stamp, deadline=_deadline_of(run)
                )
                facts = replace(facts, predictions=told)
            self._write(facts)
        return bool(taken)

    def stamp(self) -> str:
        """Return the stamp of what is observed now."""
        return stamp_of(self._epoch(), self._clock.now())

    def _write(self, facts: GangFacts) -> None:
        if facts.ended_at is not None:
            self._metrics.recorded.labels(facts.outcome).inc()
        state = "running" if facts.started_at else "waiting"
        self._cluster.journal.note(
            RowKind.RUN, facts.gang, facts.outcome or state, facts.reason or "", facts=facts
        )

    # -- what every replica checks

    async def check_forever(self, is_leading: Callable[[], bool]) -> NoReturn:
        """Forget runs that are in the history, until cancelled; the leader repeats the others."""
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            try:
                await self.check(is_leading=is_leading())
                if is_leading():
                    await self.lost.close_if_due()
            except BackendError as exc:
                logger.warning("history not read, will retry", extra={"error": str(exc)})

    async def check(self, *, is_leading: bool) -> None:
        """Forget ended runs that the history has; have the others described again."""
        if self._history is None:
            return
        ended = self.book.ended
        for first in range(0, len(ended), _PAGE):
            runs = ended[first : first + _PAGE]
            found = await self._history.recorded([uid for run in runs for uid in run.pods])
            for run in runs:
                self._settle(run, found, is_leading=is_leading)
        kept = {run.name for run in self.book.ended}
        self._waits = {name: checks for name, checks in self._waits.items() if name in kept}

    def _settle(self, run: Run, found: Mapping[str, RecordedPod], *, is_leading: bool) -> None:
        if self._adopt(run, found) and is_leading:
            return  # it is described again
        if all(_is_recorded(found.get(uid)) for uid in run.pods):
            self.book.forget(run)
            return
        if not run.was_live and self._is_past(run):
            self.book.forget(run)  # it was recorded and deleted; its hours are in the sums
            return
        extents = [(found[uid].extent, uid) for uid in run.pods if uid in found]
        if extents and self.book.adopt(max(extents)[1], max(extents)[0]) and is_leading:
            return  # it is described again, with what the history knows of it
        checks = self._waits[run.name] = self._waits.get(run.name, 0) + 1
        if is_leading and (checks >= _PATIENCE_CHECKS or not run.is_told):
            self._waits[run.name] = 0
            self._metrics.repeated.inc(run.is_told)
            self.book.mark([run])

    def _is_past(self, run: Run) -> bool:
        """Whether a run ended before the time for which runs are kept."""
        assert self._history is not None
        ended = max(pod.ended or NEVER for pod in run.pods.values())
        return ended < self._now() - self._history.keep_days * _DAY_SECONDS

    def _adopt(self, run: Run, found: Mapping[str, RecordedPod]) -> bool:
        """Learn why an earlier leader ended pods; False if that is not new."""
        is_new = False
        for uid, pod in run.pods.items():
            told = found[uid].told if uid in found else None
            if told is not None and pod.cause is None and not pod.finished_first:
                self.book.note_cause(uid, Cause(at=min(pod.left, self._now()), why=told))
                is_new = True
        return is_new


def _deadline_of(run: Run) -> float | None:
    lives = (pod.seen.life for pod in run.pods.values())
    return next((float(life.deadline_seconds) for life in lives if life.deadline_seconds), None)


def _is_recorded(pod: RecordedPod | None) -> bool:
    return pod is not None and pod.has_run_ended and pod.certainty is not Certainty.NO_END
