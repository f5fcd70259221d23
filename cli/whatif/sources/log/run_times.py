"""Run times of gangs that never ran or have not ended: predicted as the product predicts them."""

from collections.abc import Iterable
from typing import Final

from cli.whatif.sources.log.runs import RecordedRun
from extender.cells.views.listings import run_to_end
from extender.forecasts.past_runs import teach
from extender.queue.forecast.expectation import expect
from extender.queue.forecast.run_times import RunTimeBook
from state.history.predictions import PastRun

NOTHING_KNOWN_SECONDS: Final = 3600.0
"""What is assumed of a gang if no run has ended and its owner expected nothing."""


class RunTimes:
    """Predicts run times from the runs that have ended."""

    def __init__(self, past: Iterable[PastRun]) -> None:
        self._book = RunTimeBook()
        run_to_end(teach(self._book, past))

    def predict(self, run: RecordedRun, *, elapsed: float = 0.0) -> float:
        """Return how long a gang runs in all that has run for some time, or not yet."""
        forecast = self._book.forecast(run.keys, now=run.asked)
        expected = expect(forecast, estimate=run.expected_seconds, longest=None)
        limit = run.limit_seconds
        left = None if limit is None else max(0.0, limit - elapsed)
        told = expected.run_time(elapsed=elapsed, quantile=0.9, limit=left).median
        if told is not None:
            return elapsed + told
        return max(elapsed, NOTHING_KNOWN_SECONDS if limit is None else limit)
