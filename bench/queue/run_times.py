"""Run times as the product would predict them: from the runs of the trace that have ended."""

from collections.abc import Collection
from math import inf
from typing import Final

from bench.queue.trace import Job
from extender.queue.forecast.expectation import Draw, Expectation, expect
from extender.queue.forecast.keys import RunKeys
from extender.queue.forecast.model import NOTHING_KNOWN, RunTime
from extender.queue.forecast.run_times import RunTimeBook
from policy.queues.queues import Queues
from policy.submission import GangKey

_FRESH_SECONDS: Final = 60.0


class LearnedRunTimes:
    """Implements `extender.queue.ports.RunTimes`; the trace knows VCs and sizes, and no users."""

    def __init__(self, queues: Queues) -> None:
        self._quantile = queues.reservation.backfill_quantile
        self._book = RunTimeBook()
        self._keys: dict[GangKey, RunKeys] = {}
        self._started: dict[GangKey, float] = {}
        self._expected: dict[RunKeys, tuple[float, RunTime]] = {}
        """What was last expected of runs with the same keys, and when."""
        self.now = 0.0

    def submit(self, gang: GangKey, job: Job) -> None:
        """A gang was submitted."""
        self._keys[gang] = RunKeys(vc=job.vc, leaf_cells=job.leaf_cells)

    def start(self, gang: GangKey) -> None:
        """A gang started."""
        self._started[gang] = self.now
        self._book.begin(str(gang), self._keys[gang], at=self.now)

    def end(self, gang: GangKey, *, is_whole: bool) -> None:
        """A gang ended."""
        del self._started[gang]
        self._book.end(str(gang), at=self.now, is_whole=is_whole)

    def expected(self, gang: GangKey) -> RunTime:
        """Return how long a gang that waits is expected to run, as of the last minute."""
        keys = self._keys[gang]
        at, expected = self._expected.get(keys, (-inf, NOTHING_KNOWN))
        if self.now - at >= _FRESH_SECONDS:
            expectation = self._expectation(gang)
            expected = expectation.run_time(elapsed=0.0, quantile=self._quantile, limit=None)
            self._expected[keys] = self.now, expected
        return expected

    @property
    def running(self) -> Collection[GangKey]:
        """The gangs that run."""
        return self._started

    def draw(self, gang: GangKey) -> Draw:
        """Return what draws how long a gang runs from now on, or from its start on."""
        elapsed = max(0.0, self.now - self._started.get(gang, self.now))
        return self._expectation(gang).draw(elapsed=elapsed)

    def remaining(self, gang: GangKey, *, now: float) -> RunTime:
        """Return how long a gang that runs is expected to run from now on."""
        elapsed = max(0.0, self.now - self._started.get(gang, self.now))
        return self._expectation(gang).run_time(
            elapsed=elapsed, quantile=self._quantile, limit=None
        )

    def elapsed(self, gang: GangKey) -> float | None:
        """Return for how long a gang has run; None if it does not."""
        started = self._started.get(gang)
        return None if started is None else self.now - started

    def _expectation(self, gang: GangKey) -> Expectation:
        forecast = self._book.forecast(self._keys[gang], now=self.now)
        return expect(forecast, estimate=None, longest=None)


class TrueRunTimes(LearnedRunTimes):
    """Every run time is known beforehand, so that two replays of a gang know the same of it."""

    def __init__(self, queues: Queues) -> None:
        super().__init__(queues)
        self._seconds: dict[GangKey, float] = {}

    def submit(self, gang: GangKey, job: Job) -> None:
        """A gang was submitted."""
        super().submit(gang, job)
        self._seconds[gang] = job.seconds

    def expected(self, gang: GangKey) -> RunTime:
        """Return how long a gang runs."""
        return _known(self._seconds[gang])

    def remaining(self, gang: GangKey, *, now: float) -> RunTime:
        """Return how long a gang that runs still runs."""
        return _known(self._seconds[gang] - (self.now - self._started.get(gang, self.now)))


def _known(seconds: float) -> RunTime:
    return RunTime(median=seconds, low=seconds, high=seconds, limit=seconds, source="the trace")
