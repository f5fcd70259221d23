"""How far forecasts were off, and what follows for the next ones.

A *score* is the error of a forecast on a logarithmic scale, in units of the spread that its key
had. If the next score is as likely to be anywhere among the last ones as anywhere else, the
quantiles of the scores give intervals that hold what they promise (split conformal prediction),
whatever the distribution of run times. Scores are kept by size class; a class with few of them uses
those of all classes.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Final

LEAST_OUTCOMES: Final = 30
_LAST: Final = 2000
ASSUMED_SCORES: Final = tuple(log((i + 0.5) / (99.5 - i)) / log(9) for i in range(100))
"""The scores before any are known: a logistic distribution, whose highest decile is 1."""


class Scores:
    """The last scores, in the order of their size."""

    def __init__(self, *, most: int = _LAST) -> None:
        self._most = most
        self._last: deque[float] = deque()
        self._sorted: list[float] = []

    def __len__(self) -> int:
        return len(self._last)

    def add(self, score: float) -> None:
        """Note a score, and forget the oldest one."""
        if len(self._last) == self._most:
            del self._sorted[bisect_left(self._sorted, self._last.popleft())]
        self._last.append(score)
        insort(self._sorted, score)

    @property
    def in_order(self) -> Sequence[float]:
        """The scores, the least first."""
        return self._sorted

    def quantile(self, share: float) -> float:
        """Return the score that the next one exceeds with at most 1 - share."""
        return quantile_of(self._sorted, share)


def quantile_of(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of sorted scores, with the correction for their number."""
    if not ordered:
        raise ValueError("no scores")
    index = -int(-(len(ordered) + 1) * share // 1) - 1  # rounded up
    return ordered[min(len(ordered) - 1, max(0, index))]


class Calibration:
    """The scores of run times by size class."""

    def __init__(self) -> None:
        self._by_size: dict[int, Scores] = {}
        self._all = Scores()

    def add(self, size: int, score: float) -> None:
        """Note the score of a forecast for a gang of some size class."""
        self._by_size.setdefault(size, Scores()).add(score)
        self._all.add(score)

    def scores(self, size: int) -> Sequence[float]:
        """Return the scores that count for a size class, the least first."""
        own = self._by_size.get(size)
        if own is not None and len(own) >= LEAST_OUTCOMES:
            return own.in_order
        return self._all.in_order if len(self._all) >= LEAST_OUTCOMES else ASSUMED_SCORES


@dataclass(frozen=True, slots=True)
class Curve:
    """The distribution of a run time: what may be expected at each probability."""

    center: float
    """The logarithm of the point that was forecast."""
    spread: float
    scores: Sequence[float]

    @property
    def point(self) -> float:
        """The seconds that were forecast."""
        return self._seconds(0.0)

    def quantile(self, share: float) -> float:
        """Return the seconds within which the run ends with some probability."""
        return self._seconds(quantile_of(self.scores, share))

    def left(self, elapsed: float, share: float) -> float:
        """Return within which further seconds the run ends, if it has run for some.

        Beyond all that was ever seen, a run is expected to run as long again.
        """
        first = bisect_right(self.scores, self.score_of(elapsed)) if elapsed > 0 else 0
        longer = len(self.scores) - first
        if not longer:
            return elapsed * share / max(1.0 - share, 0.01)
        score = self.scores[first + min(longer - 1, int(share * longer))]
        return max(0.0, self._seconds(score) - elapsed)

    def score_of(self, seconds: float) -> float:
        """Return the score of a run time."""
        return (log(max(seconds, 1.0)) - self.center) / self.spread

    def _seconds(self, score: float) -> float:
        return exp(min(self.center + self.spread * score, 25.0))
