"""Expected starts against outcomes: `python -m bench.forecasts.expected_start TRACE.csv`.

The jobs of the trace go through one flat pool of leaf cells, first in first out, with a reservation
for the head and backfill by forecast run times. When a job of the second half has to wait, its
start is predicted from sampled futures, with what was known then.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import exp, log
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.forecasts.jobs import TraceJob, read_jobs
from bench.report import Result, format_table
from extender.cells.views.listings import run_to_end
from extender.queue.forecast.expectation import Expectation, expect
from extender.queue.forecast.futures import CopiedGang, QueueCopy, sample_starts
from extender.queue.forecast.keys import RunKeys
from extender.queue.forecast.run_times import RunTimeBook
from extender.queue.forecast.starts import (
    DrawnStart,
    ExpectedStart,
    StartCalibration,
    draw_start,
)
from policy.submission import GangKey

_POOL = ("all",)
_SAMPLES = 8
_QUANTILE = 0.9
_WEEK_SECONDS = 7 * 86_400
_REMEMBERED_SECONDS = 300.0
_MOST_TRIED = 200


@dataclass(slots=True)
class _Predicted:
    at: float
    drawn: DrawnStart
    told: dict[float, ExpectedStart | None]
    seconds: float


@dataclass(slots=True, eq=False)
class _Pool:
    """A flat pool, first in first out with backfill."""

    free: int
    every: int
    """Of the jobs that wait, every so many is predicted."""
    book: RunTimeBook = field(default_factory=RunTimeBook)
    calibration: StartCalibration = field(default_factory=StartCalibration)
    running: dict[str, tuple[TraceJob, float]] = field(default_factory=dict)
    expected_ends: dict[str, float] = field(default_factory=dict)
    waiting: list[TraceJob] = field(default_factory=list)
    ends: list[tuple[float, str]] = field(default_factory=list)
    predicted: dict[str, _Predicted] = field(default_factory=dict)
    outcomes: list[tuple[float, _Predicted, float]] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    known: dict[RunKeys, tuple[float, Expectation, float | None]] = field(default_factory=dict)

    def _known(self, job: TraceJob, now: float) -> tuple[float, Expectation, float | None]:
        known = self.known.get(job.keys)
        if known is None or now - known[0] >= _REMEMBERED_SECONDS:
            forecast = self.book.forecast(job.keys, now=now)
            expected = expect(forecast, estimate=None, longest=None)
            high = expected.run_time(elapsed=0.0, quantile=_QUANTILE).high
            known = self.known[job.keys] = now, expected, high
        return known

    def high(self, job: TraceJob, now: float) -> float | None:
        """Within which time a job ends, safely enough."""
        return self._known(job, now)[2]

    def expectation(self, job: TraceJob, now: float) -> Expectation:
        """What is expected of a job."""
        return self._known(job, now)[1]

    def advance(self, until: float) -> None:
        while self.ends and self.ends[0][0] <= until:
            at, name = heappop(self.ends)
            job, _ = self.running.pop(name)
            del self.expected_ends[name]
            self.free += job.leaf_cells
            self.book.end(name, at=at)
            self.fill(at)

    def fill(self, now: float) -> None:
        place, shadow, spare = 0, None, self.free
        while place < min(len(self.waiting), _MOST_TRIED) and self.free > 0:
            job = self.waiting[place]
            if shadow is None and job.leaf_cells <= self.free:
                self.start(place, now)
                continue
            if shadow is None:
                shadow, spare = self.shadow(job, now)
            elif job.leaf_cells <= self.free:
                if job.leaf_cells <= spare:
                    spare -= job.leaf_cells
                    self.start(place, now)
                    continue
                high = self.high(job, now)
                if high is not None and now + high <= shadow:
                    self.start(place, now)
                    continue
            place += 1

    def shadow(self, head: TraceJob, now: float) -> tuple[float, int]:
        ends = []
        for job, started in self.running.values():
            end = self.expected_ends[job.name]
            # A run that is overdue is expected to take half as long again.
            ends.append((end if end > now else now + (now - started) / 2, job.leaf_cells))
        free = self.free
        for end, leaf_cells in sorted(ends):
            free += leaf_cells
            if free >= head.leaf_cells:
                return end, free - head.leaf_cells
        return float("inf"), self.free

    def start(self, place: int, now: float) -> None:
        job = self.waiting.pop(place)
        self.free -= job.leaf_cells
        self.running[job.name] = job, now
        median = self.expectation(job, now).run_time(elapsed=0.0, quantile=_QUANTILE).median
        self.expected_ends[job.name] = now + (1e12 if median is None else median)
        self.book.begin(job.name, job.keys, at=now)
        heappush(self.ends, (now + job.seconds, job.name))
        told = self.predicted.pop(job.name, None)
        if told is not None and told.drawn.seconds < float("inf"):
            actual = now - told.at
            self.calibration.learn(told.drawn.seconds, actual)
            self.outcomes.append((now, told, actual))

    def predict(self, job: TraceJob, now: float) -> None:
        began = perf_counter()
        copy = QueueCopy(
            free={_POOL: self.free},
            running=[self.copied(job, now, now - since) for job, since in self.running.values()],
            waiting=[self.copied(job, now, 0.0) for job in self.waiting],
        )
        starts = run_to_end(sample_starts(copy, samples=_SAMPLES))
        drawn = draw_start(starts[GangKey("trace", job.name)])
        self.cpu.append((perf_counter() - began) / _SAMPLES)
        told = {
            share: self.calibration.expect(drawn.seconds, coverage=share)
            for share in (0.5, 0.8, 0.9)
        }
        self.predicted[job.name] = _Predicted(now, drawn, told, job.seconds)

    def copied(self, job: TraceJob, now: float, elapsed: float) -> CopiedGang:
        expected = self.expectation(job, now)
        return CopiedGang(
            gang=GangKey("trace", job.name),
            pool=_POOL,
            leaf_cells=job.leaf_cells,
            left=lambda share: expected.left(share, elapsed=elapsed),
            safe=self.high(job, now),
        )


def main(argv: list[str]) -> int:
    """Measure on the trace that is given, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.forecasts.expected_start")
    parser.add_argument("trace", type=Path, help="the trace, a CSV file")
    parser.add_argument("--leaf-cells", type=int, default=576)
    parser.add_argument("--every", type=int, default=5, help="predict for each so many-th gang")
    options = parser.parse_args(argv)
    jobs = [job for job in read_jobs(options.trace) if job.leaf_cells <= options.leaf_cells]
    pool = _Pool(options.leaf_cells, options.every)
    waited = 0
    for number, job in enumerate(jobs):
        pool.advance(job.submitted)
        pool.waiting.append(job)
        pool.fill(job.submitted)
        if job.name in pool.running or number < len(jobs) // 3:
            continue
        waited += 1
        if waited % options.every == 0:
            pool.predict(job, job.submitted)
    pool.advance(float("inf"))
    second_half = jobs[len(jobs) // 2].submitted
    print(format_table("expected start", list(_results(pool, second_half))))
    return 0


def _results(pool: _Pool, since: float) -> Iterator[Result]:
    outcomes = [(at, told, actual) for at, told, actual in pool.outcomes if told.at >= since]
    case: dict[str, int | str] = {"predictions": len(outcomes)}
    for share in (0.5, 0.8, 0.9):
        inside, widths, weeks = [], [], dict[int, list[bool]]()
        for _, told, actual in outcomes:
            start = told.told[share]
            if start is not None:
                inside.append(start.low <= actual <= start.high)
                widths.append(start.high / max(start.low, 30.0))
                weeks.setdefault(int(told.at // _WEEK_SECONDS), []).append(inside[-1])
        percent = round(share * 100)
        yield Result(case=case, metric=f"told_{percent}", value=len(inside))
        yield Result(case=case, metric=f"covered_{percent}", value=sum(inside) / len(inside))
        yield Result(case=case, metric=f"median_width_{percent}", value=median(widths))
        weekly = [sum(flags) / len(flags) for flags in weeks.values() if len(flags) >= 20]
        yield Result(case=case, metric=f"least_weekly_{percent}", value=min(weekly))
        yield Result(case=case, metric=f"most_weekly_{percent}", value=max(weekly))
    errors = [
        abs(log(max(actual, 30.0) / max(told.drawn.seconds, 30.0))) for _, told, actual in outcomes
    ]
    yield Result(case=case, metric="median_error_factor", value=exp(median(errors)))
    within = sum(error <= log(2) for error in errors) / len(errors)
    yield Result(case=case, metric="within_twice", value=within)
    yield Result(case=case, metric="future_ms", value=1000 * sum(pool.cpu) / len(pool.cpu))
    yield Result(case=case, metric="longest_future_ms", value=1000 * max(pool.cpu))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
