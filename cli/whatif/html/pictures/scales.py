"""From values to positions between 0 and 1, and where marks stand on an axis."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cli.whatif.html.frame.units import DAY, HOUR, MINUTE, month_at

_LINEAR_RATIO: Final = 12.0
"""Values that differ by at most so many times are shown on an even axis, which begins at 0."""
_LEAST_GAP: Final = 0.13
"""Marks of an axis are at least so far apart: their texts would touch on a phone."""
_MOST_TICKS: Final = 5
_ROUND_SECONDS: Final = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(HOUR * n for n in (1, 2, 3, 6, 12)),
    *(DAY * n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)),
)
_LOG_SECONDS: Final = (
    *(1.0, 10.0, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR),
    *(DAY * n for n in (1, 7, 30, 100, 365, 1000, 5000)),
)
_MOMENT_STEPS: Final = (
    *(MINUTE * n for n in (1, 5, 15, 30)),
    *(HOUR * n for n in (1, 3, 6, 12)),
    *(DAY * n for n in (1, 2, 7, 14)),
)
_MONTH_STEPS: Final = (1, 2, 3, 6, 12, 24, 60, 120)
_FIRST_MONDAY: Final = 4 * DAY


@dataclass(frozen=True, slots=True)
class Scale:
    """Values between `low` and `high`, evenly or by their logarithm."""

    low: float
    high: float
    ticks: Sequence[float]
    knee: float | None = None
    """None: evenly. Else by the logarithm of the value and this: near 0 it is even again."""

    def place(self, value: float) -> float:
        """Return where a value lies: 0 at the low end, 1 at the high end."""
        span = self._bend(self.high) - self._bend(self.low)
        if span <= 0 or not math.isfinite(value):
            return 0.0
        inside = min(max(value, self.low), self.high)
        return (self._bend(inside) - self._bend(self.low)) / span

    def _bend(self, value: float) -> float:
        return value if self.knee is None else math.log(value + self.knee)


def wait_scale(seconds: Iterable[float]) -> Scale:
    """Choose the axis for durations: even if they are similar, by the logarithm if they are not."""
    known = [max(value, 0.0) for value in seconds if math.isfinite(value)]
    positive = [value for value in known if value >= 1]
    if not positive:
        return Scale(0.0, MINUTE, (0.0, 30.0, MINUTE))
    most, least = max(positive), min(positive)
    if most <= least * _LINEAR_RATIO:
        return _even(most)
    if min(known) >= 1:
        return _thinned(Scale(least / 1.2, most * 1.1, _LOG_SECONDS, knee=0.0))
    return _thinned(Scale(0.0, most * 1.1, (0.0, *_LOG_SECONDS), knee=min(least, MINUTE)))


def count_scale(most: float, *, ticks: int = _MOST_TICKS) -> Scale:
    """Choose an even axis from 0 for numbers of things."""
    top = most if math.isfinite(most) and most > 0 else 1.0
    step = 10.0 ** math.floor(math.log10(top))
    step *= next(factor for factor in (0.2, 0.5, 1, 2, 5) if top / (step * factor) <= ticks)
    count = math.floor(top / step + 1e-9)
    return Scale(0.0, top * 1.04, tuple(step * index for index in range(count + 1)))


def balance_scale(least: float, most: float) -> Scale:
    """Choose an even axis of durations around 0, from a gain below it to a loss above it."""
    whole = max(-least, most, 1.0)
    low, high = min(least, -0.15 * whole), max(most, 0.15 * whole)
    ends = [end for end in (least, most) if abs(end) >= 0.3 * whole]
    return Scale(low, high, sorted({0.0, *ends}))


@dataclass(frozen=True, slots=True)
class Moments:
    """Round moments on an axis of time."""

    ticks: Sequence[float]
    are_months: bool = False


def moment_ticks(begin: float, end: float, *, most: int) -> Moments:
    """Choose round moments between two: minutes, hours, days, Mondays or months."""
    step = next((one for one in _MOMENT_STEPS if (end - begin) / one <= most), None)
    if step is None:
        return Moments(_months(begin, end, most=most), are_months=True)
    offset = _FIRST_MONDAY if step >= 7 * DAY else 0.0
    first = math.ceil((begin - offset) / step) * step + offset
    return Moments([first + step * i for i in range(most + 1) if first + step * i <= end])


def _months(begin: float, end: float, *, most: int) -> list[float]:
    first, last = month_at(begin)[0], month_at(end)[0]
    fitting = (one for one in _MONTH_STEPS if (last - first) / one <= most)
    step = next(fitting, _MONTH_STEPS[-1])
    later = range(-first % step, last - first + 1, step)
    moments = [month_at(begin, later=count)[1] for count in later]
    return [at for at in moments if begin <= at <= end][: most + 1]


def _even(most: float) -> Scale:
    step = next((one for one in _ROUND_SECONDS if most / one <= _MOST_TICKS), _ROUND_SECONDS[-1])
    count = math.ceil(most / step - 1e-9)
    return _thinned(Scale(0.0, count * step, [step * index for index in range(count + 1)]))


def _thinned(scale: Scale) -> Scale:
    """Leave out marks that lie outside or too close to the one before."""
    kept: list[float] = []
    for tick in scale.ticks:
        if scale.low <= tick <= scale.high and (
            not kept or scale.place(tick) - scale.place(kept[-1]) >= _LEAST_GAP
        ):
            kept.append(tick)
    return Scale(scale.low, scale.high, tuple(kept), scale.knee)
