"""Run times as the product would predict them: from the runs of the trace that have ended."""

from bench.queue.trace import Job
from extender.queue.forecast.expectation import Expectation, expect
from extender.queue.forecast.keys import RunKeys
from extender.queue.forecast.model import RunTime
from extender.queue.forecast.run_times import RunTimeBook
from policy.queues.queues import Queues
from policy.submission import GangKey


class LearnedRunTimes:
    """Implements `extender.queue.ports.RunTimes`; the trace knows VCs and sizes, and no users."""

    def __init__(self, queues: Queues) -> None:
        self._quantile = queues.reservation.backfill_quantile
        self._book = RunTimeBook()
        self._keys: dict[GangKey, RunKeys] = {}
        self._started: dict[GangKey, float] = {}
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
        """Return how long a gang that waits is expected to run once it has started."""
        return self._expectation(gang).run_time(elapsed=0.0, quantile=self._quantile, limit=None)

    def remaining(self, gang: GangKey, *, now: float) -> RunTime:
        """Return how long a gang that runs is expected to run from now on."""
        elapsed = max(0.0, self.now - self._started.get(gang, self.now))
        return self._expectation(gang).run_time(
            elapsed=elapsed, quantile=self._quantile, limit=None
        )

    def _expectation(self, gang: GangKey) -> Expectation:
        forecast = self._book.forecast(self._keys[gang], now=self.now)
        return expect(forecast, estimate=None, longest=None)
