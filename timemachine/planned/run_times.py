"""Run times as the product predicts them: from the runs of this play that have ended."""

from collections.abc import Collection
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

from extender.queue.forecast.expectation import Draw, Expectation, expect
from extender.queue.forecast.keys import RunKeys, name_pattern
from extender.queue.forecast.model import NOTHING_KNOWN, RunTime
from extender.queue.forecast.run_times import RunTimeBook
from policy.queues.queues import Queues
from policy.submission import ClassName, GangKey
from timemachine.model import Arrival

_FRESH_SECONDS: Final = 60.0


class _Known(NamedTuple):
    """What is known of a run before it starts: equal for gangs of which the same is expected."""

    keys: RunKeys
    estimate: float | None
    longest: float | None
    limit: float | None


@dataclass(slots=True, eq=False)
class _Expected:
    """What was last expected of all gangs of which the same is known, and when."""

    known: _Known
    at: float = -inf
    run_time: RunTime = NOTHING_KNOWN


class LearnedRunTimes:
    """Implements `extender.queue.ports.RunTimes`."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._quantile = queues.reservation.backfill_quantile
        self._book = RunTimeBook()
        self._of: dict[GangKey, _Expected] = {}
        self._all: dict[_Known, _Expected] = {}
        self._started: dict[GangKey, float] = {}
        self.now = 0.0

    def submit(self, gang: GangKey, arrival: Arrival, class_name: ClassName) -> None:
        """A gang was submitted, or has another class now."""
        known = _Known(
            keys=self.keys_of(arrival),
            estimate=arrival.expected_seconds,
            longest=self._queues.run_time.longest_of(class_name),
            limit=limit_of(arrival, class_name, self._queues),
        )
        self._of[gang] = self._all.setdefault(known, _Expected(known))

    def keys_of(self, arrival: Arrival) -> RunKeys:
        """Return by what a run is compared with earlier ones."""
        return RunKeys(
            user=arrival.user,
            name=name_pattern(arrival.gang.name) if arrival.user else "",
            vc=arrival.vc,
            leaf_cells=arrival.leaf_cells,
        )

    def start(self, gang: GangKey) -> None:
        """A gang started."""
        self._started[gang] = self.now
        self._book.begin(_run(gang), self._of[gang].known.keys, at=self.now)

    def end(self, gang: GangKey, *, is_whole: bool) -> None:
        """A run of a gang ended; not whole if it was ended for another gang."""
        del self._started[gang]
        self._book.end(_run(gang), at=self.now, is_whole=is_whole)

    def expected(self, gang: GangKey) -> RunTime:
        """Return how long a gang that waits is expected to run, as of the last minute."""
        one = self._of[gang]
        if self.now - one.at >= _FRESH_SECONDS:
            one.at, one.run_time = self.now, self._run_time(gang, elapsed=0.0)
        return one.run_time

    @property
    def running(self) -> Collection[GangKey]:
        """The gangs that run."""
        return self._started

    def draw(self, gang: GangKey) -> Draw:
        """Return what draws how long a gang runs from now on, or from its start on."""
        return self._expectation(gang).draw(elapsed=self.elapsed(gang) or 0.0)

    def remaining(self, gang: GangKey, *, now: float) -> RunTime:
        """Return how long a gang that runs is expected to run from now on."""
        return self._run_time(gang, elapsed=self.elapsed(gang) or 0.0)

    def elapsed(self, gang: GangKey) -> float | None:
        """Return for how long a gang has run; None if it does not."""
        started = self._started.get(gang)
        return None if started is None else max(0.0, self.now - started)

    def _run_time(self, gang: GangKey, *, elapsed: float) -> RunTime:
        limit = self._of[gang].known.limit
        left = None if limit is None else max(0.0, limit - elapsed)
        return self._expectation(gang).run_time(
            elapsed=elapsed, quantile=self._quantile, limit=left
        )

    def _expectation(self, gang: GangKey) -> Expectation:
        known = self._of[gang].known
        forecast = self._book.forecast(known.keys, now=self.now)
        return expect(forecast, estimate=known.estimate, longest=known.longest)


class KnownRunTimes(LearnedRunTimes):
    """Every run time is known beforehand, so that two plays of a gang know the same of it."""

    def __init__(self, queues: Queues) -> None:
        super().__init__(queues)
        self._seconds: dict[GangKey, float] = {}

    def submit(self, gang: GangKey, arrival: Arrival, class_name: ClassName) -> None:
        """A gang was submitted."""
        super().submit(gang, arrival, class_name)
        self._seconds[gang] = seconds_of(arrival, class_name, self._queues)

    def expected(self, gang: GangKey) -> RunTime:
        """Return how long a gang runs."""
        return _certain(self._seconds[gang])

    def remaining(self, gang: GangKey, *, now: float) -> RunTime:
        """Return how long a gang that runs still runs."""
        return _certain(self._seconds[gang] - (self.elapsed(gang) or 0.0))


def limit_of(arrival: Arrival, class_name: ClassName, queues: Queues) -> float | None:
    """Return the longest that a gang may run: by its own deadline, or an enforced limit."""
    enforced = queues.run_time.longest_of(class_name) if queues.run_time.enforce else None
    limits = [one for one in (arrival.limit_seconds, enforced) if one is not None]
    return min(limits) if limits else None


def seconds_of(arrival: Arrival, class_name: ClassName, queues: Queues) -> float:
    """Return how long a gang runs: as it did, or until its limit."""
    limit = limit_of(arrival, class_name, queues)
    return arrival.run_seconds if limit is None else min(arrival.run_seconds, limit)


def _run(gang: GangKey) -> str:
    return f"{gang.namespace}/{gang.stored_name}"


def _certain(seconds: float) -> RunTime:
    return RunTime(median=seconds, low=seconds, high=seconds, limit=seconds, source="the trace")
