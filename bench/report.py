"""Results: measured values, as a table for people and as JSON for machines."""

import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

SEED = 20261116
_ROUNDS = 5
_NANOSECONDS_PER_MICROSECOND = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One value of one case."""

    case: Mapping[str, int | str]
    metric: str
    value: float


class Benchmark(Protocol):
    """A benchmark: measures its cases and returns their values."""

    def __call__(self, *, is_quick: bool) -> list[Result]: ...


def best_percentiles(
    works: Mapping[str, Callable[[], object]], *, percents: Sequence[int], repeat: int
) -> dict[str, dict[int, float]]:
    """Time each work in several rounds, in turn, and keep the best round's microseconds.

    Turns, because ratios are compared: what else the machine does must hit all works alike. The
    best round, because other load only ever adds time.
    """
    rounds = [
        {name: microseconds_of(work, repeat=repeat) for name, work in works.items()}
        for _ in range(_ROUNDS)
    ]
    return {
        name: {
            percent: min(percentile(times[name], percent) for times in rounds)
            for percent in percents
        }
        for name in works
    }


def microseconds_of(work: Callable[[], object], *, repeat: int) -> list[float]:
    """Time each of `repeat` calls."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter_ns()
        work()
        times.append((time.perf_counter_ns() - began) / _NANOSECONDS_PER_MICROSECOND)
    return times


def percentile(values: Sequence[float], percent: int) -> float:
    """The value that `percent` of all values do not exceed."""
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def build_report(name: str, results: Sequence[Result]) -> dict[str, Any]:
    """Build what `--json` writes."""
    return {
        "bench": name,
        "commit": _commit(),
        "machine": _machine(),
        "seed": SEED,
        "results": [
            {"case": dict(result.case), "metric": result.metric, "value": result.value}
            for result in results
        ],
    }


def format_table(name: str, results: Sequence[Result]) -> str:
    """One line for each value."""
    lines = [f"{name}:"]
    for result in results:
        case = " ".join(f"{key}={value}" for key, value in result.case.items())
        lines.append(f"  {case:<28} {result.metric:<24} {result.value:>12.2f}")
    return "\n".join(lines)


def _machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _commit() -> str:
    git = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607 - whichever git there is
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return git.stdout.strip() or "unknown"
