"""The product's planner on a trace, and what is predicted about its starts.

Now and then, when a gang is submitted and has to wait, futures of the queue are sampled with what
is known then: run times of gangs that have ended, the planner's order and its reservations.
"""

from dataclasses import dataclass
from math import log
from time import process_time
from typing import Final

from bench.core.clusters import LEAVES
from bench.queue.run_times import TraceRunTimes
from extender.cells.views.listings import run_to_end
from extender.forecasts.queue_view import PlannedQueueView
from extender.queue.forecast.closures import CopiedPool
from extender.queue.forecast.copied_gangs import CopiedGang, KeptCells
from extender.queue.forecast.futures import QueueCopy, sample_starts
from extender.queue.forecast.starts import (
    SHORTEST_WAIT,
    DrawnStart,
    ExpectedStart,
    StartCalibration,
    StartOutcome,
    draw_start,
)
from policy.submission import GangKey
from timemachine.model import World
from timemachine.planned.gangs import PlayedGang
from timemachine.planned.planned_gangs import PlannedGangs
from timemachine.planned.ports import Change

COVERAGE: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What was predicted about a gang when it was submitted."""

    at: float
    drawn: DrawnStart
    told: ExpectedStart | None
    """The interval; None before there are enough outcomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A prediction, and how long the gang has waited."""

    predicted: Predicted
    wait: float

    @property
    def is_covered(self) -> bool | None:
        """Whether the wait was inside the interval that was told; None if none was."""
        told = self.predicted.told
        return None if told is None else told.low <= self.wait <= told.high

    @property
    def error(self) -> float:
        """The logarithm of wait ÷ median; waits below half a minute are not told apart."""
        told, drawn = self.predicted.told, self.predicted.drawn
        predicted = drawn.seconds if told is None else told.median
        return log(max(self.wait, SHORTEST_WAIT) / max(predicted, SHORTEST_WAIT))


class PredictedQueue(PlannedGangs):
    """Predicts the start of the first gang that has to wait in each stretch of time."""

    def __init__(self, world: World, *, every: float) -> None:
        super().__init__(world, run_times=TraceRunTimes)
        assert world.topology is not None
        self._topology = world.topology
        self._samples = world.policy.queues.expected_start.samples
        planner = self.planner
        self._view = PlannedQueueView(
            planner.seen, planner.ranking, planner.reservations, self.cells
        )
        self._every = every
        self._next = 0.0
        self._submitted: dict[GangKey, None] = {}
        """Gangs that were submitted since the last step."""
        self._calibration = StartCalibration()
        self._predicted: dict[GangKey, Predicted] = {}
        self.outcomes: list[Outcome] = []
        self.future_seconds: list[float] = []

    def submit(self, gang: PlayedGang) -> None:
        """Show the pods of a gang to the planner."""
        super().submit(gang)
        self._submitted[gang.key] = None

    def work(self, now: float) -> list[Change]:
        """Make steps; compare starts with their predictions, and predict anew."""
        started = super().work(now)
        for change in started:
            self._submitted.pop(change.gang, None)
            told = self._predicted.pop(change.gang, None)
            if told is not None:
                self._learn(Outcome(predicted=told, wait=now - told.at))
        if self._submitted and now >= self._next:
            self._next = now + self._every
            self._predict(next(iter(self._submitted)), now)
        self._submitted.clear()
        return started

    def _learn(self, outcome: Outcome) -> None:
        told = outcome.predicted
        self.outcomes.append(outcome)
        self._calibration.learn(
            StartOutcome(
                predicted=told.drawn.seconds,
                spread=told.drawn.spread,
                actual=outcome.wait,
                at=told.at,
                coverage=COVERAGE,
                told=None if told.told is None else (told.told.low, told.told.high),
            )
        )

    def _predict(self, gang: GangKey, now: float) -> None:
        began = process_time()
        starts = run_to_end(sample_starts(self._copy(now), samples=self._samples))
        drawn = draw_start(starts[gang])
        self.future_seconds.append((process_time() - began) / self._samples)
        told = self._calibration.expect(drawn, coverage=COVERAGE)
        self._predicted[gang] = Predicted(at=now, drawn=drawn, told=told)

    def _copy(self, now: float) -> QueueCopy:
        kept = self._view.reserved(now=now)
        free: dict[CopiedPool, int] = {
            (vc,): LEAVES * sum(promise.count for promise in one.promises)
            for vc, one in self._topology.vcs.items()
        }
        running = [self._copied(gang, None) for gang in self.run_times.running]
        for one in running:
            free[one.pool] -= one.leaf_cells
        waiting = [self._copied(gang, kept.get(gang)) for gang in self._view.order()]
        return QueueCopy(free=free, running=running, waiting=waiting)

    def _copied(self, gang: GangKey, kept: KeptCells | None) -> CopiedGang:
        arrival = self.shown(gang).arrival
        return CopiedGang(
            gang=gang,
            pool=(arrival.vc,),
            leaf_cells=arrival.leaf_cells,
            left=self.run_times.draw(gang),
            safe=self.run_times.expected(gang).ends_within,
            kept=kept,
        )
