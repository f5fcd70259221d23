"""The run times of gangs that wait and run, and what is predicted about them.

    history ──▶ book ◀── runs, as they are recorded
                 │
                 └──▶ the planner's questions; predictions, recorded with the runs

A prediction is made once, when the gang is complete or when it starts, and recorded with its run
(`state.history.facts`): of two leaders' predictions the first counts.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from extender.forecasts.past_runs import read_past_runs, teach
from extender.forecasts.run_keys import keys_of
from extender.queue.forecast.expectation import Expectation, expect
from extender.queue.forecast.keys import RunKeys, size_class
from extender.queue.forecast.model import NOTHING_KNOWN, RunTime
from extender.queue.forecast.run_times import RunTimeBook
from policy.errors import BackendError
from policy.queues.queues import Queues
from policy.submission import GangKey
from service.clock import Clock
from service.tasks import in_slices
from state.history.facts import RUN_TIME, START, GangFacts, Prediction
from state.history.predictions import WHOLE_OUTCOMES, PastRun
from state.history.runs import RunHistory

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 10.0
_HIGH: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedRun:
    """A run that has not ended."""

    run: str
    gang: GangKey
    keys: RunKeys
    class_name: str
    asked: float
    started: float | None
    estimate: float | None
    limit: float | None
    """How long its pods may run."""
    leaf_type: str | None = None
    group: str | None = None
    """The group that is charged."""
    ends_by: float | None = None
    """When its workload is ended, whether it has started or not."""

    def elapsed(self, now: float) -> float:
        """Return for how long it has run."""
        return 0.0 if self.started is None else max(0.0, now - self.started)

    def limit_left(self, now: float, *, elapsed: float) -> float | None:
        """Return how long it may run from now on, after it has run for some time."""
        left = [] if self.limit is None else [self.limit - elapsed]
        left += [] if self.ends_by is None else [self.ends_by - now]
        return max(0.0, min(left)) if left else None


class RunForecasts:
    """What is known about the run times of gangs; the port `RunTimes` of the planner."""

    def __init__(
        self, history: RunHistory | None, *, queues: Callable[[], Queues], clock: Clock
    ) -> None:
        self._history = history
        self._queues = queues
        self._clock = clock
        self.book = RunTimeBook()
        self.is_loaded = history is None
        self._early: dict[str, tuple[GangKey, GangFacts, float | None]] = {}
        """Runs that go on and were described before the history was read."""
        self._runs: dict[str, FollowedRun] = {}
        self._of_gang: dict[GangKey, str] = {}
        self._predicted: dict[str, dict[str, Prediction]] = {}
        """What was predicted about each run, by kind."""
        self.on_started: list[Callable[[Prediction, float], None]] = []
        """Called when a run has started whose start was predicted, with the moment."""
        self._new: dict[str, None] = {}
        """Runs with predictions that were not recorded yet."""

    # -- the planner's questions

    def expected(self, gang: GangKey) -> RunTime:
        """Return how long a gang that waits is expected to run once it has started."""
        run = self.run_of(gang)
        return NOTHING_KNOWN if run is None else self.of_new(run)

    def remaining(self, gang: GangKey, *, now: float) -> RunTime:
        """Return how long a gang that runs is expected to run from now on."""
        run = self.run_of(gang)
        if run is None:
            return NOTHING_KNOWN
        wall = self._now()
        elapsed = run.elapsed(wall)
        limit = run.limit_left(wall, elapsed=elapsed)
        return self.expectation(run).run_time(elapsed=elapsed, quantile=self._quantile, limit=limit)

    def elapsed(self, gang: GangKey) -> float | None:
        """Return for how long a gang has run; None if that is not known."""
        run = self.run_of(gang)
        return None if run is None or run.started is None else run.elapsed(self._now())

    def of_new(self, run: FollowedRun) -> RunTime:
        """Return how long a gang that does not exist is expected to run."""
        limit = run.limit_left(self._now(), elapsed=0.0)
        expected = self.expectation(run)
        return expected.run_time(elapsed=0.0, quantile=self._quantile, limit=limit)

    def run_of(self, gang: GangKey) -> FollowedRun | None:
        """Return the latest run of a gang."""
        return self._runs.get(self._of_gang.get(gang, ""))

    def expectation(self, run: FollowedRun) -> Expectation:
        """Return what is expected of a run from its start on."""
        return expect(
            self.book.forecast(run.keys, now=self._now()),
            estimate=run.estimate,
            longest=self._queues().run_time.longest_of(run.class_name),
        )

    @property
    def _quantile(self) -> float:
        return self._queues().reservation.backfill_quantile

    def _now(self) -> float:
        return self._clock.now().timestamp()

    # -- runs, as they are recorded

    def follow(
        self, gang: GangKey, facts: GangFacts, *, stamp: str, deadline: float | None = None
    ) -> Mapping[str, Prediction]:
        """A run changed; return what was predicted about it.

        `deadline` is how many seconds after its start its workload is ended; a Job starts when its
        first pod is created.
        """
        run = _followed(gang, facts, deadline)
        if not self.is_loaded:
            self._follow_early(run, facts, deadline)
            return {}
        if facts.ended_at is not None:
            return self._end(run, facts, stamp=stamp)
        self._note_start(run)
        self._runs[run.run] = run
        self._of_gang[gang] = run.run
        if run.started is not None:
            self.predict(run, stamp=stamp)
            self.book.begin(run.run, run.keys, at=run.started)
        self._new.pop(run.run, None)  # it is recorded with what is returned
        return self._told(run.run)

    def _follow_early(self, run: FollowedRun, facts: GangFacts, deadline: float | None) -> None:
        """Know the limit of a run; what is predicted about it needs the history."""
        if facts.ended_at is not None:
            self._forget(run.run)
            return
        self._runs[run.run] = run
        self._of_gang[run.gang] = run.run
        self._early[run.run] = run.gang, facts, deadline

    def _note_start(self, run: FollowedRun) -> None:
        """Compare the start of a run with what was predicted, when it is first seen."""
        before = self._runs.get(run.run)
        if run.started is None or before is None or before.started is not None:
            return
        told = self._told(run.run).get(START)
        if told is not None:
            for listener in self.on_started:
                listener(told, run.started)

    def _end(self, run: FollowedRun, facts: GangFacts, *, stamp: str) -> Mapping[str, Prediction]:
        """Learn from a run that has ended; one that was short is predicted first, without it."""
        assert facts.ended_at is not None
        is_followed = run.run in self._runs and run.started is not None
        if is_followed:
            self.predict(run, stamp=stamp)
        told = self._told(run.run)
        self._note_start(run)
        if is_followed and run.started is not None:
            self.book.begin(run.run, run.keys, at=run.started)
            is_whole = facts.outcome in WHOLE_OUTCOMES
            self.book.end(run.run, at=facts.ended_at.timestamp(), is_whole=is_whole)
        self._forget(run.run)
        return told

    def predict(self, run: FollowedRun, *, stamp: str) -> None:
        """Predict how long a run takes, unless that was predicted."""
        if RUN_TIME in self._told(run.run):
            return
        forecast = self.book.forecast(run.keys, now=self._now())
        time = self.expectation(run).run_time(elapsed=0.0, quantile=_HIGH, limit=run.limit)
        if time.median is None:
            return
        self._tell(
            run.run,
            RUN_TIME,
            {
                "stamp": stamp,
                "key": str(forecast.kind) if forecast and time.runs else "owner's estimate",
                "size": size_class(run.keys.leaf_cells),
                "median": round(time.median, 3),
                "low": round(time.low or 0.0, 3),
                "high": round(time.high or 0.0, 3),
                "runs": time.runs,
                "source": time.source,
            },
        )

    def predict_start(self, run: FollowedRun, prediction: dict[str, Any]) -> None:
        """Note after how long a run was predicted to start, unless that was predicted."""
        if START not in self._told(run.run):
            self._tell(run.run, START, prediction)

    def _tell(self, run: str, kind: str, prediction: Prediction) -> None:
        self._predicted.setdefault(run, {})[kind] = prediction
        self._new[run] = None

    def take_predicted(self) -> Collection[str]:
        """Return the runs with predictions that are to be recorded."""
        taken, self._new = self._new, {}
        return taken

    def _told(self, run: str) -> Mapping[str, Prediction]:
        return dict(self._predicted.get(run, {}))

    def retain(self, runs: Collection[str]) -> None:
        """Forget runs that are not among those that exist: they have another name now."""
        for run in [run for run in self._runs if run not in runs]:
            self._forget(run)

    def _forget(self, run: str) -> None:
        followed = self._runs.pop(run, None)
        self._early.pop(run, None)
        self._predicted.pop(run, None)
        self._new.pop(run, None)
        self.book.forget(run)
        if followed is not None and self._of_gang.get(followed.gang) == run:
            del self._of_gang[followed.gang]

    # -- a new leadership term

    async def load(self) -> list[PastRun]:
        """Learn from the history, however long that takes; return the runs that were read."""
        if self._history is None:
            return []
        while True:
            try:
                past = await read_past_runs(self._history)
                break
            except BackendError as exc:
                logger.warning("past runs not read, will retry", extra={"error": str(exc)})
                await asyncio.sleep(_RETRY_SECONDS)
        await in_slices(teach(self.book, past))
        known = {run.run for run in past}
        self.is_loaded = True
        early, self._early = self._early, {}
        for run, (gang, facts, deadline) in early.items():
            if run in known:
                self._forget(run)
            else:
                self.follow(gang, facts, stamp=facts.stamp, deadline=deadline)
        logger.info("past runs learned", extra={"runs": len(past)})
        return past

    @property
    def followed(self) -> Collection[FollowedRun]:
        """The runs that have not ended."""
        return self._runs.values()


def _followed(gang: GangKey, facts: GangFacts, deadline: float | None) -> FollowedRun:
    asked = facts.asked_at.timestamp() if facts.asked_at else 0.0
    return FollowedRun(
        run=facts.run,
        gang=gang,
        keys=keys_of(facts),
        class_name=facts.granted_class or "",
        asked=asked,
        ends_by=None if deadline is None else asked + deadline,
        started=facts.started_at.timestamp() if facts.started_at else None,
        estimate=None if facts.estimate_seconds is None else float(facts.estimate_seconds),
        limit=None if facts.limit_seconds is None else float(facts.limit_seconds),
        leaf_type=facts.leaf_type,
        group=facts.group_name,
    )
