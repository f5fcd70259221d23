"""When a waiting gang is expected to start: a median and an interval, or why that is unknown.

The median comes from sampled futures, and is moved by half of what it was off of late: moved by all
of it, it follows chance. The futures' own spread claims too much, so the interval comes from
outcomes (conformal prediction). A *score* is the error of an earlier prediction on a logarithmic
scale, in units of the spread that its futures had; the quantiles of the last scores of the same
bucket, in units of the spread of these futures, give the interval. Below 30 outcomes nothing is
told: an interval would be made up.

Gangs that are submitted together share their errors, and the outcome of a long wait is known late.
So of all gangs of one half hour and bucket one outcome counts, and quantiles are taken further
outside than what is promised. How far depends on how often starts were inside of late (adaptive
conformal inference): what is promised holds in the long run, whatever the errors are. The early and
the late end of intervals adapt apart, so that none is wide because the other one was missed.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Final

from extender.queue.forecast.calibration import LEAST_OUTCOMES, Scores
from extender.queue.forecast.copied_gangs import NEVER
from extender.queue.forecast.futures import SampledStart
from policy.submission import GangKey

SHORTEST_WAIT: Final = 30.0
"""Shorter waits count as this one: they are not told apart."""
_LONGEST_WAIT: Final = 10 * 365 * 86_400.0
"""Longer waits are told as this one: a few extreme outcomes give times that no calendar has."""
_MOST_EXPONENT: Final = 100.0
_LAST: Final = 500
_RECENT: Final = 100
"""So many of the last outcomes move the median."""
_CORRECTED: Final = 0.5
"""The share of a recent error by which the median is moved."""
_APART_SECONDS: Final = 1800.0
"""Of predictions that are made within this time, one outcome counts."""
_LEAST_SPREAD: Final = 0.2
_MOST_SPREAD: Final = 3.0
_STEP: Final = 0.02
"""How fast quantiles move: nearly by this at a start outside of its interval, less at others."""
_OUTSIDE: Final = (0.01, 0.3)
"""The least and the most that is left outside at one end."""
_COVERED: Final = 300
_BUCKETS: Final[Mapping[str, float]] = {
    "below 30 min": 1800.0,
    "below 4 h": 14_400.0,
    "4 h or more": NEVER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnStart:
    """What sampled futures say about the start of one gang."""

    seconds: float
    """The median; infinite if the gang does not start in most futures."""
    after: tuple[GangKey, ...] = ()
    """The gangs whose end it waits for, in most futures first."""
    spread: float = _LEAST_SPREAD
    """Half of the distance between early and late futures, on a logarithmic scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOutcome:
    """A prediction, and what became of it."""

    predicted: float
    """The median of the futures, in seconds."""
    spread: float
    actual: float
    at: float
    """When it was predicted, in seconds since 1970."""
    coverage: float
    """The share of starts that should be inside of their intervals."""
    told: tuple[float, float] | None = None
    """The interval that was told, in seconds; None if none was."""

    @property
    def is_covered(self) -> bool | None:
        """Whether the start was inside the interval that was told; None if none was."""
        return None if self.told is None else self.told[0] <= self.actual <= self.told[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedStart:
    """When a gang is expected to start, in seconds from when that was computed."""

    median: float
    low: float
    high: float
    outcomes: int
    """From how many outcomes the interval comes."""


def draw_start(samples: Sequence[SampledStart], *, most: int = 3) -> DrawnStart:
    """Return what the futures of one gang have in common."""
    ordered = sorted(sample.seconds for sample in samples)
    middle = len(ordered) // 2
    seconds = ordered[middle] if len(ordered) % 2 else _between(*ordered[middle - 1 : middle + 1])
    ends = Counter(sample.after for sample in samples if sample.after is not None)
    common = sorted(ends, key=lambda gang: (-ends[gang], gang))
    return DrawnStart(seconds=seconds, after=tuple(common[:most]), spread=_spread(ordered))


def _spread(ordered: Sequence[float]) -> float:
    """Return how far futures are apart, without the earliest and the latest of many."""
    inner = ordered[1:-1] if len(ordered) >= 4 else ordered
    early, late = max(inner[0], SHORTEST_WAIT), max(inner[-1], SHORTEST_WAIT)
    if late == NEVER:
        return _MOST_SPREAD
    return min(max(log(late / early) / 2, _LEAST_SPREAD), _MOST_SPREAD)


def _between(one: float, other: float) -> float:
    return one if other == NEVER else (one + other) / 2


def bucket_of(seconds: float) -> str:
    """Return the bucket of a predicted wait."""
    return next(name for name, below in _BUCKETS.items() if seconds < below or below == NEVER)


class StartCalibration:
    """The scores of predicted starts, by bucket, and what share of outcomes was inside."""

    def __init__(self) -> None:
        self._scores = {name: Scores(most=_LAST) for name in _BUCKETS}
        self._counted: dict[tuple[str, int], None] = {}
        """The buckets and half hours of which an outcome counts."""
        self._recent = {name: Scores(most=_RECENT) for name in _BUCKETS}
        self._early = self._late = 0.0
        """How much more than at first is left outside of intervals, at either end."""
        self._covered: deque[bool] = deque(maxlen=_COVERED)

    def learn(self, outcome: StartOutcome) -> None:
        """A gang has started."""
        if outcome.is_covered is not None:
            self._covered.append(outcome.is_covered)
        bucket = bucket_of(outcome.predicted)
        slot = bucket, int(outcome.at // _APART_SECONDS)
        if outcome.predicted == NEVER or slot in self._counted:
            return
        self._counted[slot] = None
        if len(self._counted) > len(_BUCKETS) * _LAST:
            del self._counted[next(iter(self._counted))]
        error = log(max(outcome.actual, SHORTEST_WAIT) / max(outcome.predicted, SHORTEST_WAIT))
        for scores in (self._scores[bucket], self._recent[bucket]):
            scores.add(error / outcome.spread)
        if outcome.told is not None:
            low, high = outcome.told
            outside = (1.0 - outcome.coverage) / 2
            self._early = _adapted(self._early, outside, is_missed=outcome.actual < low)
            self._late = _adapted(self._late, outside, is_missed=outcome.actual > high)

    @property
    def coverage(self) -> float | None:
        """The share of the last starts inside their intervals; None before the first."""
        return sum(self._covered) / len(self._covered) if self._covered else None

    def outcomes(self, predicted: float) -> int:
        """Return how many outcomes the bucket of a prediction has."""
        return len(self._scores[bucket_of(predicted)])

    def expect(self, drawn: DrawnStart, *, coverage: float) -> ExpectedStart | None:
        """Return the interval around a prediction; None if there are too few outcomes."""
        predicted = drawn.seconds
        scores = self._scores[bucket_of(predicted)]
        if len(scores) < LEAST_OUTCOMES or predicted == NEVER:
            return None
        outside = (1.0 - coverage) / 2
        early, late = (_left_outside(outside, shift) for shift in (self._early, self._late))
        error = _CORRECTED * self._recent[bucket_of(predicted)].quantile(0.5)
        low, median, high = (
            _scaled(max(predicted, SHORTEST_WAIT), score * drawn.spread)
            for score in (scores.quantile(early), error, scores.quantile(1.0 - late))
        )
        if low <= SHORTEST_WAIT:
            low = 0.0
        if median <= SHORTEST_WAIT:
            median = min(predicted, median)
        return ExpectedStart(
            median=min(max(median, low), high), low=low, high=high, outcomes=len(scores)
        )


def _left_outside(outside: float, shift: float) -> float:
    """Return the share of outcomes that is left outside at one end: half of it at first."""
    least, most = _OUTSIDE
    return min(max(outside / 2 + shift, least), most)


def _adapted(shift: float, outside: float, *, is_missed: bool) -> float:
    """Return how much more than at first is left outside at one end, after one more outcome."""
    shift += _STEP * (outside - is_missed)
    return _left_outside(outside, shift) - outside / 2


def _scaled(seconds: float, logarithm: float) -> float:
    """Return a time that is longer by a factor, given by its logarithm."""
    return min(seconds * exp(min(logarithm, _MOST_EXPONENT)), _LONGEST_WAIT)
