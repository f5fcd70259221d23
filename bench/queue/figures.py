"""What a replay says: waits in hours, by size of gang, and what the decisions cost."""

from collections.abc import Sequence
from statistics import mean, median
from typing import Final

from bench.queue.replay import Replay, Start
from bench.report import percentile

_HOUR: Final = 3600.0
_LARGE: Final = 16
_NODE: Final = 8

Figures = dict[str, float]
"""Values by metric."""


def figures_of(replayed: Replay) -> Figures:
    """Return the figures of one replay."""
    counted = [start for start in replayed.starts if start.is_counted]
    waits = _hours(counted)
    large = _hours([start for start in counted if start.leaf_cells >= _LARGE])
    nodes = _hours([start for start in counted if start.leaf_cells == _NODE])
    return {
        "gangs": len(waits),
        "mean_wait_h": mean(waits),
        "p95_wait_h": percentile(waits, 95),
        "longest_wait_h": max(waits),
        "p95_wait_of_16_h": percentile(large, 95) if large else 0.0,
        "p95_wait_of_8_h": percentile(nodes, 95) if nodes else 0.0,
        "cpu_s": replayed.cpu_seconds,
        "wall_s": replayed.wall_seconds,
        "longest_event_ms": replayed.longest_event_ms,
    }


def _hours(starts: Sequence[Start]) -> list[float]:
    return [start.wait / _HOUR for start in starts]


def medians(found: Sequence[Figures]) -> Figures:
    """Return the median of each metric over several replays."""
    return {metric: median(figures[metric] for figures in found) for metric in found[0]}
