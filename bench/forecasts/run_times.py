"""How far forecast run times are off: `python -m bench.forecasts.run_times TRACE.csv`.

Jobs start when they are submitted and end after their duration. Each job of the second half is
forecast when it starts, from the jobs that had ended by then and those that ran.
"""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from math import exp, log
from pathlib import Path
from statistics import median

from bench.forecasts.jobs import TraceJob, read_jobs
from bench.report import Result, format_table
from extender.queue.forecast.keys import size_class
from extender.queue.forecast.run_times import RunTimeBook

_LOW, _HIGH = 0.1, 0.9


@dataclass(frozen=True, slots=True)
class _Outcome:
    size: int
    error: float
    is_covered: bool
    is_below_high: bool


def main(argv: list[str]) -> int:
    """Measure on the trace that is given, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.forecasts.run_times")
    parser.add_argument("trace", type=Path, help="the trace, a CSV file")
    outcomes = forecast_all(read_jobs(parser.parse_args(argv).trace))
    results = _results({"size": "all"}, outcomes)
    for size in sorted({one.size for one in outcomes}):
        results += _results({"size": size}, [one for one in outcomes if one.size == size])
    print(format_table("run times", results))
    return 0


def forecast_all(jobs: list[TraceJob]) -> list[_Outcome]:
    """Forecast the jobs of the second half, each from what had ended before it."""
    book, ends = RunTimeBook(), list[tuple[float, str]]()
    outcomes = []
    for number, job in enumerate(jobs):
        while ends and ends[0][0] <= job.submitted:
            at, name = heappop(ends)
            book.end(name, at=at)
        forecast = book.begin(job.name, job.keys, at=job.submitted)
        heappush(ends, (job.submitted + job.seconds, job.name))
        if number >= len(jobs) // 2 and forecast is not None:
            curve = forecast.curve
            low, high = curve.quantile(_LOW), curve.quantile(_HIGH)
            outcomes.append(
                _Outcome(
                    size=size_class(job.leaf_cells),
                    error=abs(log(job.seconds / forecast.seconds)),
                    is_covered=low <= job.seconds <= high,
                    is_below_high=job.seconds <= high,
                )
            )
    return outcomes


def _results(case: dict[str, int | str], outcomes: list[_Outcome]) -> list[Result]:
    values = {
        "jobs": float(len(outcomes)),
        "median_error_factor": exp(median(one.error for one in outcomes)),
        "within_twice": _share(one.error <= log(2) for one in outcomes),
        "covered_80": _share(one.is_covered for one in outcomes),
        "below_high_90": _share(one.is_below_high for one in outcomes),
    }
    return [Result(case=case, metric=name, value=value) for name, value in values.items()]


def _share(flags: Iterable[bool]) -> float:
    known = list(flags)
    return sum(known) / len(known)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
