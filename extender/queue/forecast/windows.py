"""The last run times of one key, and what they say about the next one.

A run that still goes on, or that was ended for another gang, is *censored*: its run time is at
least what it has run. Without such runs, keys whose long runs go on would look short. The weight of
a censored run goes to all longer ones (Kaplan and Meier). Ended and running runs are looked at
alike: only those that started since the first of the remembered ended ones.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

LONGEST_WINDOW: Final = 50
SHORTEST_RUN: Final = 1.0
"""Shorter runs count as one second."""
_RECENT: Final = 3
_LEAST_SPREAD: Final = 0.35
"""Half of the distance between the deciles of logarithms is at least this."""
_LOW, _HIGH = 0.1, 0.9
_HALF: Final = 0.5 + 1e-9


@dataclass(frozen=True, slots=True)
class Estimate:
    """What some key says about the logarithm of a run time."""

    usual: float
    """The median of the window."""
    recent: float
    """The median of the last few runs."""
    spread: float
    """Half of the distance between the deciles."""
    runs: int

    def mixed(self, parent: "Estimate", weight: float) -> "Estimate":
        """Return this estimate at some weight, and its parent's for the rest."""
        rest = 1.0 - weight
        return Estimate(
            usual=weight * self.usual + rest * parent.usual,
            recent=weight * self.recent + rest * parent.recent,
            spread=weight * self.spread + rest * parent.spread,
            runs=self.runs,
        )


class Window:
    """The last ended runs of one key, and those that go on."""

    __slots__ = ("_cut", "_estimate", "_last", "_running", "_sorted")

    def __init__(self) -> None:
        self._last: deque[tuple[float, float]] = deque()
        """The start and the logarithm of the run time, in the order of their ends."""
        self._sorted: list[float] = []
        self._cut: deque[float] = deque(maxlen=LONGEST_WINDOW)
        """Logarithms of what was run by runs that were cut short."""
        self._running: dict[str, float] = {}
        """The start of each run that goes on."""
        self._estimate: Estimate | None = None

    def __len__(self) -> int:
        return len(self._last)

    def begin(self, run: str, *, at: float) -> None:
        """A run started."""
        self._running[run] = at

    def leave(self, run: str) -> None:
        """A run does not go on."""
        self._running.pop(run, None)

    def learn(self, logarithm: float, *, started: float) -> None:
        """A run ended by itself."""
        if len(self._last) == LONGEST_WINDOW:
            _, oldest = self._last.popleft()
            del self._sorted[bisect_left(self._sorted, oldest)]
        self._last.append((started, logarithm))
        insort(self._sorted, logarithm)

    def learn_cut(self, logarithm: float) -> None:
        """A run was ended for another reason than its own."""
        self._cut.append(logarithm)

    def estimate(self, *, now: float) -> Estimate:
        """Return what the window says; it must not be empty."""
        since = min(started for started, _ in self._last)
        longest = LONGEST_WINDOW
        running = [
            log(max(now - started, SHORTEST_RUN))
            for started in list(self._running.values())[-longest:]
            if started >= since
        ]
        middle = _median(self._sorted, [*running, *self._cut])
        low, high = (self._sorted[int(len(self._sorted) * share)] for share in (_LOW, _HIGH))
        last = sorted(logarithm for _, logarithm in list(self._last)[-_RECENT:])
        return Estimate(
            usual=middle,
            recent=last[len(last) // 2] if len(last) % 2 else (last[0] + last[1]) / 2,
            spread=max(_LEAST_SPREAD, (high - low) / 2),
            runs=len(self._last),
        )


def _median(ended: Sequence[float], censored: Iterable[float]) -> float:
    """Return the median of run times, some of which are only known to be longer."""
    events = sorted([*((time, False) for time in ended), *((time, True) for time in censored)])
    surviving, at_risk = 1.0, len(events)
    for time, is_censored in events:
        if not is_censored:
            surviving *= 1.0 - 1.0 / at_risk
            if surviving <= _HALF:
                return time
        at_risk -= 1
    return events[-1][0]
