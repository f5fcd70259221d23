"""The last run times of one key, and what they say about the next one.

A run that still goes on, or that was ended for another gang, is *censored*: its run time is at
least what it has run. Without such runs, keys whose long runs go on would look short. The weight of
a censored run goes to all longer ones (Kaplan and Meier). Ended and running runs are looked at
alike: only those that started since the first of the remembered ended ones.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, inf, log
from typing import Final

from extender.queue.forecast.draws import PastTimes

LONGEST_WINDOW: Final = 50
SHORTEST_RUN: Final = 1.0
"""Shorter runs count as one second."""
_RECENT: Final = 3
_LEAST_SPREAD: Final = 0.35
"""Half of the distance between the deciles of logarithms is at least this."""
_LOW, _HIGH = 0.1, 0.9
_HALF: Final = 0.5 + 1e-9
_ROUNDING_SECONDS: Final = 1e-3


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


@dataclass(frozen=True, slots=True)
class _KeptEstimate:
    """An estimate that holds while time goes on: no run that goes on passes an ended one."""

    estimate: Estimate
    since: float
    until: float


class RunTimeWindow:
    """The last ended runs of one key, and those that go on."""

    __slots__ = ("_cut", "_kept", "_last", "_longest", "_past", "_running", "_seed", "_sorted")

    def __init__(self, *, seed: int = 0, longest: int = LONGEST_WINDOW) -> None:
        """`seed` tells keys apart in futures; `longest` is how many runs are remembered."""
        self._seed = seed
        self._longest = longest
        self._last: deque[tuple[float, float]] = deque()
        """The start and the logarithm of the run time, in the order of their ends."""
        self._sorted: list[float] = []
        self._cut: deque[float] = deque(maxlen=LONGEST_WINDOW)
        """Logarithms of what was run by runs that were cut short."""
        self._running: dict[str, float] = {}
        """The start of each run that goes on."""
        self._kept: _KeptEstimate | None = None
        self._past: PastTimes | None = None

    def __len__(self) -> int:
        return len(self._last)

    def begin(self, run: str, *, at: float) -> None:
        """A run started."""
        self._running[run] = at
        self._kept = None

    def leave(self, run: str) -> None:
        """A run does not go on."""
        if self._running.pop(run, None) is not None:
            self._kept = None

    def learn(self, logarithm: float, *, started: float) -> None:
        """A run ended by itself."""
        if len(self._last) == self._longest:
            _, oldest = self._last.popleft()
            del self._sorted[bisect_left(self._sorted, oldest)]
        self._last.append((started, logarithm))
        insort(self._sorted, logarithm)
        self._kept = self._past = None

    def learn_cut(self, logarithm: float) -> None:
        """A run was ended for another reason than its own."""
        self._cut.append(logarithm)
        self._kept = None

    @property
    def past(self) -> PastTimes:
        """The run times of the ended runs, as they are now."""
        if self._past is None:
            self._past = PastTimes([exp(one) for _, one in self._last], seed=self._seed)
        return self._past

    def estimate(self, *, now: float) -> Estimate:
        """Return what the window says; it must not be empty.

        It is computed again when the window has changed, or a run that goes on has passed the run
        time of an ended one: nothing else has an influence.
        """
        kept = self._kept
        if kept is None or not (now == kept.since or kept.since <= now < kept.until):
            kept = self._kept = self._compute(now)
        return kept.estimate

    @property
    def holds_until(self) -> float:
        """Until when what was last estimated holds, if the window does not change."""
        return inf if self._kept is None else self._kept.until

    def _compute(self, now: float) -> _KeptEstimate:
        first = min(started for started, _ in self._last)
        starts = [
            started
            for started in list(self._running.values())[-LONGEST_WINDOW:]
            if started >= first
        ]
        running = [log(max(now - started, SHORTEST_RUN)) for started in starts]
        middle, is_moving = _median(self._sorted, [*running, *self._cut])
        low, high = (self._sorted[int(len(self._sorted) * share)] for share in (_LOW, _HIGH))
        last = sorted(logarithm for _, logarithm in list(self._last)[-_RECENT:])
        estimate = Estimate(
            usual=middle,
            recent=last[len(last) // 2] if len(last) % 2 else (last[0] + last[1]) / 2,
            spread=max(_LEAST_SPREAD, (high - low) / 2),
            runs=len(self._last),
        )
        until = now if is_moving else min(map(self._passes_at, starts, running), default=inf)
        return _KeptEstimate(estimate, now, until)

    def _passes_at(self, started: float, logarithm: float) -> float:
        """Return when a run that goes on passes the run time of the next ended one."""
        place = bisect_right(self._sorted, logarithm)
        if place == len(self._sorted):
            return inf
        return started + exp(self._sorted[place]) - _ROUNDING_SECONDS


def _median(ended: Sequence[float], censored: Iterable[float]) -> tuple[float, bool]:
    """Return the median of run times, some of which are only known to be longer.

    Also tell whether it is itself one of these.
    """
    events = sorted([*((time, False) for time in ended), *((time, True) for time in censored)])
    surviving, at_risk = 1.0, len(events)
    for time, is_censored in events:
        if not is_censored:
            surviving *= 1.0 - 1.0 / at_risk
            if surviving <= _HALF:
                return time, False
        at_risk -= 1
    return events[-1]
