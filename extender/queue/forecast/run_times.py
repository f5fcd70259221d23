"""The book of run times: what ended runs say about how long a gang will run.

A gang is compared with earlier runs of the same user, name, image and size; where there are fewer
than five of them, they are mixed with the runs of the next more general key. Two methods are tried,
the median of the last fifty runs and the median of the last three; for each size class the one
counts that was nearer of late. Around the point lies an interval, calibrated by how far earlier
forecasts were off. The same runs in the same order always give the same forecasts.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, log
from typing import Final

from extender.queue.forecast.calibration import Calibration, Curve
from extender.queue.forecast.draws import ENOUGH, Draws, own_weight
from extender.queue.forecast.keys import Key, KeyKind, RunKeys, size_class
from extender.queue.forecast.run_time_windows import SHORTEST_RUN, Estimate, RunTimeWindow

_LOSSES: Final = 200
_LEAST_LOSSES: Final = 20
_MOST_KEYS: Final = 20_000
_SEEDS: Final = 2**31 - 1
_MOST_GENERAL: Final = 2000
"""Runs of all gangs that are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What was forecast for a run."""

    curve: Curve
    kind: KeyKind
    runs: int
    usual: float
    recent: float
    windows: tuple[RunTimeWindow, ...] = field(compare=False, repr=False)
    """What such runs took, of the most specific key first."""

    @property
    def draws(self) -> Draws:
        """The run times of such runs as they are now, for sampled futures."""
        return Draws(tuple(window.past for window in self.windows))

    @property
    def seconds(self) -> float:
        """The point that was forecast."""
        return self.curve.point


@dataclass(slots=True, eq=False)
class _Going:
    keys: RunKeys
    started: float
    forecast: Forecast | None


@dataclass(frozen=True, slots=True)
class _Kept:
    forecast: Forecast | None
    since: float
    until: float


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
        self._windows: dict[Key, RunTimeWindow] = {}
        self._going: dict[str, _Going] = {}
        self._losses: dict[int, _Losses] = {}
        self._calibration = Calibration()
        self._kept: dict[RunKeys, _Kept] = {}
        """The answers since a run last began or ended."""
        self.learned = 0
        """How many ended runs were learned."""

    def forecast(self, keys: RunKeys, *, now: float) -> Forecast | None:
        """Return what is expected of a run; None if no run has ended yet.

        It is asked several times for each gang that is planned: an answer is kept until a run
        begins or ends, or a run that goes on has passed the run time of an ended one.
        """
        kept = self._kept.get(keys)
        if kept is None or not kept.since <= now < kept.until:
            if len(self._kept) >= self._most_keys:
                self._kept.clear()
            kept = self._kept[keys] = self._answer(keys, now=now)
        return kept.forecast

    def _answer(self, keys: RunKeys, *, now: float) -> _Kept:
        forecast = self._forecast(keys, now=now)
        used = () if forecast is None else forecast.windows
        return _Kept(forecast, now, min((one.holds_until for one in used), default=inf))

    def _forecast(self, keys: RunKeys, *, now: float) -> Forecast | None:
        windows = self._windows_of(keys)
        if not windows:
            return None
        kind, estimate = windows[0][0], _mixed(windows, now=now)
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
            runs=estimate.runs,
            usual=estimate.usual,
            recent=estimate.recent,
            windows=tuple(window for _, window in windows),
        )

    def begin(self, run: str, keys: RunKeys, *, at: float) -> Forecast | None:
        """A run started: return what is expected of it. Repeated reports change nothing."""
        if run not in self._going:
            self._kept.clear()
            self._going[run] = _Going(keys, at, self.forecast(keys, now=at))
            for _, key in keys.ladder():
                self._window(key).begin(run, at=at)
        return self._going[run].forecast

    def end(self, run: str, *, at: float, is_whole: bool = True) -> None:
        """A run ended; not whole if it was ended for another gang, or with its node."""
        going = self._going.pop(run, None)
        if going is None:
            return
        self._kept.clear()
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
        self._kept.clear()
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

    def _windows_of(self, keys: RunKeys) -> list[tuple[KeyKind, RunTimeWindow]]:
        """Return the windows of a run that have ended runs, the most specific first."""
        found = ((kind, self._windows.get(key)) for kind, key in keys.ladder())
        return [(kind, window) for kind, window in found if window]

    def _window(self, key: Key) -> RunTimeWindow:
        window = self._windows.pop(key, None)
        if window is None:
            window = _new_window(key)
        self._windows[key] = window
        if len(self._windows) > self._most_keys:
            del self._windows[next(iter(self._windows))]
        return window


def _new_window(key: Key) -> RunTimeWindow:
    """Return a window; the most general key remembers more, for runs longer than all of others."""
    seed = 0
    for byte in repr(key).encode():
        seed = (seed * 31 + byte) % _SEEDS
    if key[0] == KeyKind.ALL.name:
        return RunTimeWindow(seed=seed, longest=_MOST_GENERAL)
    return RunTimeWindow(seed=seed)


def _mixed(windows: Sequence[tuple[KeyKind, RunTimeWindow]], *, now: float) -> Estimate:
    """Return the estimate of the most specific window, mixed where its runs are few."""
    places = (place for place, (_, window) in enumerate(windows) if len(window) >= ENOUGH)
    last = next(places, len(windows) - 1)
    estimate = windows[last][1].estimate(now=now)
    for _, window in reversed(windows[:last]):
        own = window.estimate(now=now)
        estimate = own.mixed(estimate, own_weight(own.runs))
    return estimate
