"""When a waiting gang is expected to start: a median and an interval, or why that is unknown.

The median comes from sampled futures. Their own spread claims too much, so the interval comes from
outcomes: the last 300 errors of predictions of the same bucket, on a logarithmic scale (conformal
prediction). Below 30 outcomes nothing is told: an interval would be made up.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Final

from extender.queue.forecast.calibration import LEAST_OUTCOMES, Scores
from extender.queue.forecast.futures import NEVER, SampledStart
from policy.submission import GangKey

SHORTEST_WAIT: Final = 30.0
"""Shorter waits count as this one: they are not told apart."""
_LAST: Final = 300
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
    return DrawnStart(seconds=seconds, after=tuple(common[:most]))


def _between(one: float, other: float) -> float:
    return one if other == NEVER else (one + other) / 2


def bucket_of(seconds: float) -> str:
    """Return the bucket of a predicted wait."""
    return next(name for name, below in _BUCKETS.items() if seconds < below or below == NEVER)


class StartCalibration:
    """The errors of predicted starts, by bucket, and what share of outcomes was inside."""

    def __init__(self) -> None:
        self._errors = {name: Scores(most=_LAST) for name in _BUCKETS}
        self._covered: deque[bool] = deque(maxlen=_LAST)

    def learn(self, predicted: float, actual: float) -> None:
        """A gang started so many seconds after the prediction."""
        error = log(max(actual, SHORTEST_WAIT) / max(predicted, SHORTEST_WAIT))
        self._errors[bucket_of(predicted)].add(error)

    def note_covered(self, *, is_covered: bool) -> None:
        """A start was inside the interval that was told, or outside."""
        self._covered.append(is_covered)

    @property
    def coverage(self) -> float | None:
        """The share of the last starts inside their intervals; None before the first."""
        return sum(self._covered) / len(self._covered) if self._covered else None

    def outcomes(self, predicted: float) -> int:
        """Return how many outcomes the bucket of a prediction has."""
        return len(self._errors[bucket_of(predicted)])

    def expect(self, predicted: float, *, coverage: float) -> ExpectedStart | None:
        """Return the interval around a prediction; None if there are too few outcomes."""
        errors = self._errors[bucket_of(predicted)]
        if len(errors) < LEAST_OUTCOMES or predicted == NEVER:
            return None
        outside = (1.0 - coverage) / 2
        median = max(predicted, SHORTEST_WAIT)
        low = median * exp(errors.quantile(outside))
        high = median * exp(errors.quantile(1.0 - outside))
        if low <= SHORTEST_WAIT:
            low = 0.0
        return ExpectedStart(
            median=min(max(predicted, low), high), low=low, high=high, outcomes=len(errors)
        )
