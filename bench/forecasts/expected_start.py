"""Expected starts against outcomes: `python -m bench starts [--trace TRACE.csv]`.

A trace goes through the real planner and engine, first in first out with reservations and backfill.
Each half hour, the start of the first gang that has to wait is predicted when it is submitted. All
predictions teach; those of the second half of the trace count. Waits below half a minute are not
told apart. Without a trace, a generated workload stands in.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import exp, log
from statistics import median
from typing import Final

from bench.core.clusters import LEAVES
from bench.forecasts.predicted_queue import COVERAGE, Outcome, PredictedQueue
from bench.queue.options import QueueOptions
from bench.queue.replay import replay, world_of
from bench.queue.shape import Form, build_cluster, one_share
from bench.queue.strategies import document
from bench.queue.trace import Trace, generate_trace, read_trace
from bench.report import SEED, Result
from extender.queue.forecast.starts import SHORTEST_WAIT
from policy.queues.queues import Strategy

_CAPACITIES: Final = (576, 512)
_GENERATED_CAPACITY: Final = 64
_GENERATED_LOAD: Final = 1.0
_EVERY_SECONDS: Final = 1800.0
_WEEK_SECONDS: Final = 7 * 86_400.0
_LEAST_OF_A_WEEK: Final = 20


def measure(*, is_quick: bool, options: QueueOptions) -> list[Result]:
    """Predict starts on a trace, and compare them with what came true."""
    capacities = options.capacities or (_CAPACITIES if options.trace else (_GENERATED_CAPACITY,))
    strategies = options.strategies or (Strategy.FIFO,)
    trace = _load(options, is_quick=is_quick)
    return [
        result
        for capacity, strategy in product(capacities, strategies)
        for result in _measure(trace, capacity, Strategy(strategy))
    ]


def _load(options: QueueOptions, *, is_quick: bool) -> Trace:
    if options.trace is not None:
        return read_trace(options.trace, is_whole=options.is_whole)
    days = 7.0 if is_quick else 28.0
    return generate_trace(
        days=days, load=_GENERATED_LOAD, leaf_cells=_GENERATED_CAPACITY, seed=SEED
    )


def _measure(trace: Trace, capacity: int, strategy: Strategy) -> Iterator[Result]:
    cluster = build_cluster(one_share(capacity // LEAVES))
    world = world_of(cluster, document(strategy, per_pool=1))
    queue = PredictedQueue(world, every=_EVERY_SECONDS)
    replay(trace, world, lambda _: queue, Form.FLAT)
    half = trace.jobs[len(trace.jobs) // 2].submitted
    counted = [one for one in queue.outcomes if one.predicted.at >= half]
    told = [one for one in counted if one.is_covered is not None]
    case: dict[str, int | str] = {
        "load": trace.name,
        "capacity": capacity,
        "strategy": strategy,
    }
    future = 1000 * sum(queue.future_seconds) / len(queue.future_seconds)
    values = {"predicted": len(counted), **_figures(told), "future_ms": future}
    for metric, value in values.items():
        yield Result(case=case, metric=metric, value=value)


def _figures(told: Sequence[Outcome]) -> dict[str, float]:
    weeks: dict[int, list[bool]] = {}
    widths = []
    for one in told:
        start = one.predicted.told
        assert start is not None
        weeks.setdefault(int(one.predicted.at // _WEEK_SECONDS), []).append(bool(one.is_covered))
        widths.append(max(start.high, SHORTEST_WAIT) / max(start.low, SHORTEST_WAIT))
    weekly = [sum(one) / len(one) for one in weeks.values() if len(one) >= _LEAST_OF_A_WEEK]
    errors = [abs(one.error) for one in told]
    covered = sum(bool(one.is_covered) for one in told) / len(told)
    within = sum(error <= log(2) for error in errors) / len(errors)
    return {
        "told": len(told),
        "covered": covered,
        "off_coverage": abs(covered - COVERAGE),
        "least_weekly": min(weekly, default=0.0),
        "most_weekly": max(weekly, default=0.0),
        "median_width": median(widths),
        "within_twice": within,
        "beyond_twice": 1.0 - within,
        "median_error": exp(median(errors)),
    }
