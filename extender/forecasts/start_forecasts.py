"""When waiting gangs are expected to start.

Sampled futures of a copy of the queue are played in slices, so that no answer waits for them. What
is told is calibrated by outcomes: the first prediction for a gang is recorded with its run, and its
start shows how far that was off.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from prometheus_client import CollectorRegistry, Gauge

from extender.cells.views.listings import Stepwise
from extender.forecasts.queue_copy import QueueCopier
from extender.forecasts.run_forecasts import FollowedRun, RunForecasts
from extender.queue.forecast.calibration import LEAST_OUTCOMES
from extender.queue.forecast.futures import NEVER, QueueCopy, Starts, sample_starts
from extender.queue.forecast.keys import size_class
from extender.queue.forecast.starts import (
    DrawnStart,
    ExpectedStart,
    StartCalibration,
    bucket_of,
    draw_start,
)
from policy.queues.queues import ExpectedStartRules
from policy.submission import GangKey
from service.clock import Clock
from service.tasks import in_slices
from state.history.facts import Prediction
from state.history.predictions import PastRun

_MOST_NAMED: Final = 3
_AT_ONCE: Final = 50

Order = Callable[[], Iterable[GangKey]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartForecast:
    """What is known about the start of one gang."""

    at: float
    """When it was computed, in seconds since 1970."""
    drawn: DrawnStart
    expected: ExpectedStart | None
    unknown: str
    """Why no start is expected; empty if one is."""
    silent: tuple[str, ...] = ()
    """Some gangs that run and of which nothing is known, if it is unknown for that."""


class StartForecasts:
    """The expected starts of all gangs that wait for cells."""

    def __init__(
        self,
        copier: QueueCopier,
        run_times: RunForecasts,
        *,
        order: Order,
        rules: Callable[[], ExpectedStartRules],
        clock: Clock,
        registry: CollectorRegistry,
    ) -> None:
        self._copier = copier
        self._run_times = run_times
        self._order = order
        self._rules = rules
        self._clock = clock
        self._calibration = StartCalibration()
        self._found: dict[GangKey, StartForecast] = {}
        self._playing = asyncio.Lock()
        """One copy of the queue is played at a time."""
        show_coverage(registry, self._calibration)
        run_times.on_started.append(self._learn)

    # -- outcomes

    def learn_past(self, past: Iterable[PastRun]) -> None:
        """Learn from predictions of the history, in the order of the starts."""
        for run in sorted(past, key=lambda run: (run.started_at, run.run)):
            if run.start is not None:
                self._learn(run.start, run.started_at.timestamp())

    def _learn(self, told: Prediction, started: float) -> None:
        actual = max(0.0, started - told["at"])
        self._calibration.learn(told["median"], actual)
        if told.get("told"):
            self._calibration.note_covered(is_covered=told["low"] <= actual <= told["high"])

    # -- forecasts

    async def update(self, *, stamp: str) -> None:
        """Compute the expected start of every waiting gang, in slices."""
        now = self._clock.now().timestamp()
        starts = await self._play(self._order())
        found = {}
        for number, (gang, forecast) in enumerate(starts.items()):
            found[gang] = forecast
            run = self._run_times.run_of(gang)
            if run is not None and forecast.drawn.seconds < NEVER:
                prediction = {"stamp": stamp, **_to_prediction(forecast, run, at=now)}
                self._run_times.predict_start(run, prediction)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        self._found = found

    async def show_would_start(self, run: FollowedRun) -> dict[str, Any]:
        """Show when a gang that does not exist would start if it were submitted now."""
        if self._playing.locked():
            return {"unknown": "starts are being computed; ask again"}
        order = [gang for gang in self._order() if gang != run.gang]
        forecast = (await self._play(order, extra=run))[run.gang]
        return show_start(forecast, coverage=self._rules().coverage)

    async def _play(
        self, order: Iterable[GangKey], *, extra: FollowedRun | None = None
    ) -> dict[GangKey, StartForecast]:
        rules = self._rules()
        async with self._playing:
            now = self._clock.now().timestamp()
            copy = await in_slices(self._copier.copy(order, extra=extra, now=now))
            starts = await in_slices(sample_starts(copy, samples=rules.samples))
            return await in_slices(self._conclude(copy, starts, at=now))

    def _conclude(
        self, copy: QueueCopy, starts: Starts, *, at: float
    ) -> Stepwise[dict[GangKey, StartForecast]]:
        silent, coverage = _without_history(copy), self._rules().coverage
        found: dict[GangKey, StartForecast] = {}
        for number, (gang, samples) in enumerate(starts.items()):
            drawn = draw_start(samples)
            found[gang] = self._forecast(drawn, at=at, coverage=coverage, silent=silent)
            if number % _AT_ONCE == 0:
                yield
        return found

    def _forecast(
        self, drawn: DrawnStart, *, at: float, coverage: float, silent: tuple[str, ...]
    ) -> StartForecast:
        expected = self._calibration.expect(drawn.seconds, coverage=coverage)
        unknown = "" if expected else self._why(drawn, silent)
        named = silent if drawn.seconds == NEVER else ()
        return StartForecast(at=at, drawn=drawn, expected=expected, unknown=unknown, silent=named)

    def _why(self, drawn: DrawnStart, silent: tuple[str, ...]) -> str:
        if drawn.seconds == NEVER:
            return "no history for gangs that run" if silent else "its pool has too few leaf cells"
        known = self._calibration.outcomes(drawn.seconds)
        waits = f"no history for waits {bucket_of(drawn.seconds)}"
        return f"{waits}: {known} of {LEAST_OUTCOMES} outcomes that are needed"

    def show(self, gang: GangKey) -> dict[str, Any]:
        """Show when a gang is expected to start, or why that is unknown."""
        forecast = self._found.get(gang)
        if forecast is None:
            return {"unknown": "not computed yet"}
        return show_start(forecast, coverage=self._rules().coverage)


def show_start(forecast: StartForecast, *, coverage: float) -> dict[str, Any]:
    """Show an expected start, and what it depends on."""
    shown: dict[str, Any] = {"computed": _time(forecast.at)}
    if forecast.drawn.after:
        shown["after"] = [str(gang) for gang in forecast.drawn.after]
    expected = forecast.expected
    if expected is None:
        named = {"withoutHistory": list(forecast.silent)} if forecast.silent else {}
        return shown | {"unknown": forecast.unknown} | named
    return shown | {
        "median": _time(forecast.at + expected.median),
        "earliest": _time(forecast.at + expected.low),
        "latest": _time(forecast.at + expected.high),
        "coverage": coverage,
        "outcomes": expected.outcomes,
    }


def _to_prediction(forecast: StartForecast, run: FollowedRun, *, at: float) -> dict[str, Any]:
    expected, seconds = forecast.expected, forecast.drawn.seconds
    return {
        "at": at,
        "key": bucket_of(seconds),
        "size": size_class(run.keys.leaf_cells),
        "median": round(seconds, 3),
        "low": round(expected.low if expected else 0.0, 3),
        "high": round(expected.high if expected else seconds, 3),
        "told": expected is not None,
    }


def _without_history(copy: QueueCopy) -> tuple[str, ...]:
    """Name some gangs that run and of which nothing is known."""
    silent = (str(gang.gang) for gang in copy.running if gang.left(0.5) is None)
    return tuple(sorted(silent)[:_MOST_NAMED])


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def show_coverage(registry: CollectorRegistry, calibration: StartCalibration) -> None:
    """Export how often expected starts were right."""
    coverage = Gauge(
        "cellgate_extender_expected_start_coverage",
        "The share of the last 300 gangs that started inside the interval that was told when "
        "they began to wait; NaN before the first.",
        registry=registry,
    )
    coverage.set_function(lambda: _or_nan(calibration.coverage))
