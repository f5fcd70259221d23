"""Run times for sampled futures, drawn from those of ended runs.

A drawn run time is one that a run of the same key had: a formula around a median would put too many
runs into the tail, and starts behind them too late. Runs that end one after the other are often
alike, such as those of one sweep. So each future draws from a block of consecutive runs of a key:
futures then differ by as much as the next days may differ from the last ones. A run that goes on is
compared with those that ran longer; where its key has none, with those of the next more general
key. The same runs always give the same draws.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

ENOUGH: Final = 5
"""From so many runs on, a key is not mixed with more general ones."""
_BLOCK: Final = 10
"""Consecutive runs from which one future draws."""
_LEAST_SHARE: Final = 0.2
_MIX: Final = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, (1 << 64) - 1)


def share_of(place: int, sample: int) -> float:
    """Return a number between 0 and 1 that looks random and is always the same."""
    first, second, third, mask = _MIX
    value = (place * 1024 + sample + 1) * first & mask
    value = (value ^ (value >> 30)) * second & mask
    value = (value ^ (value >> 27)) * third & mask
    return ((value ^ (value >> 31)) >> 11) / (1 << 53)


class PastTimes:
    """The last run times of one key. They do not change."""

    __slots__ = ("_blocks", "_ended", "_seed", "ordered")

    def __init__(self, ended: Sequence[float], *, seed: int) -> None:
        """`ended` is in the order of the ends; keys with different seeds get different blocks."""
        self._ended = tuple(ended)
        self._seed = seed
        self._blocks: dict[int, Sequence[float]] = {}
        self.ordered: Sequence[float] = sorted(ended)
        """All run times, the least first."""

    def block(self, sample: int) -> Sequence[float]:
        """Return the run times from which one future draws, the least first."""
        found = self._blocks.get(sample)
        if found is None:
            found = self._blocks[sample] = self._cut(sample)
        return found

    def _cut(self, sample: int) -> Sequence[float]:
        number = len(self._ended)
        if number <= _BLOCK:
            return self.ordered
        first = int(share_of(self._seed, sample) * number)
        taken = self._ended[first : first + _BLOCK]
        return sorted((*taken, *self._ended[: _BLOCK - len(taken)]))


@dataclass(frozen=True, slots=True)
class Draws:
    """The last run times of the keys of one gang."""

    levels: tuple[PastTimes, ...]
    """Of the most specific key first."""

    def left(self, elapsed: float, share: float, sample: int) -> float:
        """Return what is left of a run after some seconds, at a probability, in one future.

        Beyond all that was ever seen, a run is expected to run as long again.
        """
        found: Sequence[float] = ()
        first = 0
        for level in self.levels:
            longer = _longer(level, elapsed, sample)
            if longer is None:
                continue
            found, first = longer
            weight = own_weight(len(level.ordered))
            if share < weight:
                share /= weight
                break
            share = (share - weight) / (1.0 - weight)
        if not found:
            return elapsed * share / max(1.0 - share, _LEAST_SHARE)
        count = len(found) - first
        return found[first + min(count - 1, int(share * count))] - elapsed


def _longer(level: PastTimes, elapsed: float, sample: int) -> tuple[Sequence[float], int] | None:
    """Return run times, and from which on they are longer; None if all are shorter."""
    block = level.block(sample)
    if elapsed <= 0:
        return block, 0
    for seconds in (block, level.ordered):
        first = bisect_right(seconds, elapsed)
        if first < len(seconds):
            return seconds, first
    return None


def own_weight(runs: int) -> float:
    """Return the weight of a key with some runs; the rest is that of more general keys."""
    return 1.0 if runs >= ENOUGH else runs / (runs + ENOUGH)
