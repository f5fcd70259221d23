"""What is expected of one gang: from history, from its owner, and from limits.

The history of the same user counts before the owner's estimate; the estimate counts before what
other users ran. Without either, nothing is expected. A limit ends every run; the longest run of the
Queues document is only assumed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log
from typing import Final

from extender.queue.forecast.calibration import ASSUMED_SCORES, Curve
from extender.queue.forecast.draws import ENOUGH
from extender.queue.forecast.keys import KeyKind
from extender.queue.forecast.model import NOTHING_KNOWN, RunTime
from extender.queue.forecast.run_times import Forecast

Draw = Callable[[float, int], float | None]
"""Gives what is left of a run at a probability, in a future; None if nothing is known."""

_OWN_KINDS: Final = (KeyKind.NAME, KeyKind.USER)
_ESTIMATE_SPREAD: Final = 0.7
_LOW, _MIDDLE = 0.1, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """How long a gang is expected to run."""

    curve: Curve | None = None
    source: str = NOTHING_KNOWN.source
    runs: int = 0
    longest: float | None = None
    """The longest run of its class, as the Queues document assumes it."""
    forecast: Forecast | None = None
    """What such runs took; None if that is not what is expected."""

    def run_time(self, *, elapsed: float, quantile: float, limit: float | None = None) -> RunTime:
        """Return what is left of a run after some time; `limit` is what is left until its limit."""
        longest = self._longest_left(elapsed)
        if self.curve is None:
            told = replace(NOTHING_KNOWN, high=longest, limit=limit)
            return told if longest is None else replace(told, source="the longest run of its class")
        low, median, high = (
            _least(self.curve.left(elapsed, share), longest, limit)
            for share in (_LOW, _MIDDLE, quantile)
        )
        if not elapsed:  # what was forecast is nearer than the middle of all scores
            median = _least(self.curve.point, longest, limit)
        return RunTime(
            median=median,
            low=min(low, median),
            high=max(high, median),
            limit=limit,
            source=self.source,
            runs=self.runs,
        )

    def draw(self, *, elapsed: float, limit: float | None = None) -> Draw:
        """Return what draws the rest of a run, by what is known now, for sampled futures."""
        if self.forecast is not None:
            draws = self.forecast.draws
            return lambda share, sample: _least(draws.left(elapsed, share, sample), limit)
        if self.curve is not None:
            curve = self.curve
            return lambda share, _: _least(curve.left(elapsed, share), limit)
        longest = self._longest_left(elapsed)
        known = [one for one in (longest, limit) if one is not None]
        bound = min(known) if known else None
        return lambda *_: bound

    def _longest_left(self, elapsed: float) -> float | None:
        """Return what is left of the longest run; None for a run that has proved that wrong."""
        left = None if self.longest is None else self.longest - elapsed
        return left if left is not None and left > 0.0 else None


def expect(
    forecast: Forecast | None, *, estimate: float | None, longest: float | None
) -> Expectation:
    """Put together what is known about a gang."""
    is_own = forecast is not None and forecast.kind in _OWN_KINDS and forecast.runs >= ENOUGH
    if estimate is not None and not is_own:
        return Expectation(
            curve=Curve(
                log(max(estimate, 1.0)),
                forecast.curve.spread if forecast is not None else _ESTIMATE_SPREAD,
                forecast.curve.scores if forecast is not None else ASSUMED_SCORES,
            ),
            source="its owner's estimate",
            longest=longest,
        )
    if forecast is None:
        return Expectation(longest=longest)
    return Expectation(
        curve=forecast.curve,
        source=_source(forecast),
        runs=forecast.runs,
        longest=longest,
        forecast=forecast,
    )


def _source(forecast: Forecast) -> str:
    number = "1 run" if forecast.runs == 1 else f"{forecast.runs} runs"
    if forecast.kind is KeyKind.ALL:
        return f"the last {number} of all gangs"
    return f"the last {number} of the same {forecast.kind}"


def _least(seconds: float, *others: float | None) -> float:
    return min([seconds, *(one for one in others if one is not None)])
