"""The book of run times: what ended runs say about how long a gang will run.

A gang is compared with earlier runs of the same user, name, image and size; where there are fewer
than five of them, they are mixed with the runs of the next more general key. Two methods are tried,
the median of the last fifty runs and the median of the last three; for each size class the one
counts that was nearer of late. Around the point lies an interval, calibrated by how far earlier
forecasts were off. The same runs in the same order always give the same forecasts.
"""

from collections import deque
from dataclasses import dataclass
from math import log
from typing import Final

from extender.queue.forecast.calibration import Calibration, Curve
from extender.queue.forecast.keys import Key, KeyKind, RunKeys, size_class
from extender.queue.forecast.windows import SHORTEST_RUN, Estimate, Window

_ENOUGH: Final = 5
"""From so many runs on, a key is not mixed with more general ones."""
_LOSSES: Final = 200
_LEAST_LOSSES: Final = 20
_MOST_KEYS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What was forecast for a run."""

    curve: Curve
    kind: KeyKind
    method: str
    runs: int
    usual: float
    recent: float

    @property
    def seconds(self) -> float:
        """The point that was forecast."""
        return self.curve.point


@dataclass(slots=True, eq=False)
class _Going:
    keys: RunKeys
    started: float
    forecast: Forecast | None


class _Losses:
    """How far each method was off lately, for one size class."""

    def __init__(self) -> None:
        self._last: deque[tuple[float, float]] = deque()
        self._usual = self._recent = 0.0

    def add(self, usual: float, recent: float) -> None:
        if len(self._last) == _LOSSES:
            old_usual, old_recent = self._last.popleft()
            self._usual -= old_usual
            self._recent -= old_recent
        self._last.append((usual, recent))
        self._usual += usual
        self._recent += recent

    @property
    def is_recent_better(self) -> bool:
        return len(self._last) >= _LEAST_LOSSES and self._recent < self._usual


class RunTimeBook:
    """What is known about run times. Bounded: keys that were not used for longest are forgotten."""

    def __init__(self, *, most_keys: int = _MOST_KEYS) -> None:
        self._most_keys = most_keys
        self._windows: dict[Key, Window] = {}
        self._going: dict[str, _Going] = {}
        self._losses: dict[int, _Losses] = {}
        self._calibration = Calibration()
        self.learned = 0
        """How many ended runs were learned."""

    def forecast(self, keys: RunKeys, *, now: float) -> Forecast | None:
        """Return what is expected of a run; None if no run has ended yet."""
        found = self._estimate(keys, now=now)
        if found is None:
            return None
        kind, estimate = found
        size = size_class(keys.leaf_cells)
        losses = self._losses.get(size)
        is_recent = losses is not None and losses.is_recent_better
        return Forecast(
            curve=Curve(
                center=estimate.recent if is_recent else estimate.usual,
                spread=estimate.spread,
                scores=self._calibration.scores(size),
            ),
            kind=kind,
            method="last 3" if is_recent else "last 50",
            runs=estimate.runs,
            usual=estimate.usual,
            recent=estimate.recent,
        )

    def begin(self, run: str, keys: RunKeys, *, at: float) -> Forecast | None:
        """A run started: return what is expected of it. Repeated reports change nothing."""
        if run not in self._going:
            self._going[run] = _Going(keys, at, self.forecast(keys, now=at))
            for _, key in keys.ladder():
                self._window(key).begin(run, at=at)
        return self._going[run].forecast

    def end(self, run: str, *, at: float, is_whole: bool = True) -> None:
        """A run ended; not whole if it was ended for another gang, or with its node."""
        going = self._going.pop(run, None)
        if going is None:
            return
        logarithm = log(max(at - going.started, SHORTEST_RUN))
        for _, key in going.keys.ladder():
            window = self._window(key)
            window.leave(run)
            if is_whole:
                window.learn(logarithm, started=going.started)
            else:
                window.learn_cut(logarithm)
        if is_whole:
            self.learned += 1
            self._score(going, logarithm)

    def forget(self, run: str) -> None:
        """A run is known no longer; nothing is learned from it."""
        going = self._going.pop(run, None)
        for _, key in going.keys.ladder() if going is not None else ():
            self._window(key).leave(run)

    def _score(self, going: _Going, logarithm: float) -> None:
        forecast = going.forecast
        if forecast is None:
            return
        size = size_class(going.keys.leaf_cells)
        losses = self._losses.setdefault(size, _Losses())
        losses.add(abs(logarithm - forecast.usual), abs(logarithm - forecast.recent))
        curve = forecast.curve
        self._calibration.add(size, (logarithm - curve.center) / curve.spread)

    def _estimate(self, keys: RunKeys, *, now: float) -> tuple[KeyKind, Estimate] | None:
        """Return the estimate of the most specific key with runs, mixed where those are few."""
        found: list[tuple[KeyKind, Estimate]] = []
        for kind, key in keys.ladder():
            window = self._windows.get(key)
            if window is None or not len(window):
                continue
            found.append((kind, window.estimate(now=now)))
            if len(window) >= _ENOUGH:
                break
        if not found:
            return None
        _, estimate = found[-1]
        for _, own in reversed(found[:-1]):
            estimate = own.mixed(estimate, own.runs / (own.runs + _ENOUGH))
        return found[0][0], estimate

    def _window(self, key: Key) -> Window:
        window = self._windows.pop(key, None) or Window()
        self._windows[key] = window
        if len(self._windows) > self._most_keys:
            del self._windows[next(iter(self._windows))]
        return window
