"""When waiting gangs are expected to start.

Sampled futures of a copy of the queue are played in slices, so that no answer waits for them. What
is told is calibrated by outcomes: the first prediction for a gang is recorded with its run, and its
start shows how far that was off.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client import CollectorRegistry, Gauge

from extender.cells.views.listings import Stepwise
from extender.forecasts.queue_copy import NewGang, QueueCopier
from extender.forecasts.queue_view import EmptyQueue, QueueView
from extender.forecasts.run_forecasts import FollowedRun, RunForecasts
from extender.queue.forecast.calibration import LEAST_OUTCOMES
from extender.queue.forecast.closures import CopiedPool
from extender.queue.forecast.copied_gangs import NEVER
from extender.queue.forecast.futures import QueueCopy, Starts, sample_starts
from extender.queue.forecast.keys import size_class
from extender.queue.forecast.starts import (
    DrawnStart,
    ExpectedStart,
    StartCalibration,
    StartOutcome,
    bucket_of,
    draw_start,
)
from extender.queue.order.facts import QueueFacts
from extender.queue.order.new_places import NewPlace
from policy.queues.queues import ExpectedStartRules
from policy.submission import GangKey, LeafType, VcName
from policy.wording import moment
from service.clock import Clock
from service.tasks import in_slices
from state.history.facts import Prediction
from state.history.predictions import PastRun

_MOST_NAMED: Final = 3
_AT_ONCE: Final = 50

Probes = Callable[[float], Stepwise[list[FollowedRun]]]


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
    behind: tuple[GangKey, ...] = ()
    """Other gangs of its pool for which cells are reserved."""
    place: NewPlace | None = None
    """Where it would be in the order; None if it exists."""


class StartForecasts:
    """The expected starts of all gangs that wait for cells."""

    def __init__(
        self,
        copier: QueueCopier,
        run_times: RunForecasts,
        *,
        rules: Callable[[], ExpectedStartRules],
        clock: Clock,
        registry: CollectorRegistry,
    ) -> None:
        self._copier = copier
        self._run_times = run_times
        self.queue: QueueView = EmptyQueue()
        self.probes: Probes | None = None
        """Gives gangs that do not exist; when they would start is computed with the rest."""
        self.outlook: dict[GangKey, tuple[FollowedRun, StartForecast]] = {}
        """When these gangs would start."""
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
        outcome = _outcome_of(told, started)
        if outcome is not None:
            self._calibration.learn(outcome)

    # -- forecasts

    async def update(self, *, stamp: str) -> None:
        """Compute the expected start of every waiting gang, in slices."""
        now = self._clock.now().timestamp()
        probes = await in_slices(self.probes(now)) if self.probes is not None else []
        starts = await self._play(probes)
        self.outlook = {run.gang: (run, starts.pop(run.gang)) for run in probes}
        found, coverage = {}, self._rules().coverage
        for number, (gang, forecast) in enumerate(starts.items()):
            found[gang] = forecast
            run = self._run_times.run_of(gang)
            if run is not None and forecast.drawn.seconds < NEVER:
                prediction = {
                    "stamp": stamp,
                    "coverage": coverage,
                    **_to_prediction(forecast, run, at=now),
                }
                self._run_times.predict_start(run, prediction)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        self._found = found

    async def show_would_start(self, run: FollowedRun) -> dict[str, Any]:
        """Show when a gang that does not exist would start if it were submitted now."""
        if self._playing.locked():
            return {"unknown": "starts are being computed; ask again"}
        forecast = (await self._play([run]))[run.gang]
        return show_start(forecast, coverage=self._rules().coverage)

    async def _play(self, new: Sequence[FollowedRun]) -> dict[GangKey, StartForecast]:
        """Play the queue with some gangs that do not exist, each as if it were the only one."""
        rules = self._rules()
        async with self._playing:
            now = self._clock.now().timestamp()
            asked = {run.gang for run in new}
            order = [gang for gang in self.queue.order() if gang not in asked]
            places = await in_slices(self.queue.places([self._facts(run, now) for run in new]))
            gangs = [NewGang(run, place.ahead) for run, place in zip(new, places, strict=True)]
            placed = {run.gang: place for run, place in zip(new, places, strict=True)}
            copying = self._copier.copy(
                order,
                new=gangs,
                without=self.queue.without_chance(),
                reserved=self.queue.reserved(now=now),
                now=now,
            )
            copy = await in_slices(copying)
            starts = await in_slices(sample_starts(copy, samples=rules.samples))
            return await in_slices(self._conclude(copy, starts, placed, at=now))

    def _conclude(
        self, copy: QueueCopy, starts: Starts, places: Mapping[GangKey, NewPlace], *, at: float
    ) -> Stepwise[dict[GangKey, StartForecast]]:
        silent, coverage = (yield from _without_history(copy)), self._rules().coverage
        reserved = _reserved(copy)
        found: dict[GangKey, StartForecast] = {}
        for number, gang in enumerate(copy.waiting):
            drawn = draw_start(starts[gang.gang])
            expected = self._calibration.expect(drawn, coverage=coverage)
            found[gang.gang] = StartForecast(
                at=at,
                drawn=drawn,
                expected=expected,
                unknown="" if expected else self._why(drawn, silent),
                silent=silent if drawn.seconds == NEVER else (),
                behind=tuple(one for one in reserved.get(gang.pool, ()) if one != gang.gang),
                place=places.get(gang.gang),
            )
            if number % _AT_ONCE == 0:
                yield
        return found

    def _facts(self, run: FollowedRun, now: float) -> QueueFacts:
        """Return what the order would know of a gang that does not exist."""
        return QueueFacts(
            gang=run.gang,
            user=run.keys.user,
            group=run.group,
            vc=VcName(run.keys.vc),
            class_name=run.class_name,
            priority=self._copier.priority(run.class_name),
            leaf_cells=run.keys.leaf_cells,
            leaf_type=None if run.leaf_type is None else LeafType(run.leaf_type),
            asked=now,
            run_time=self._run_times.of_new(run),
        )

    def _why(self, drawn: DrawnStart, silent: tuple[str, ...]) -> str:
        if drawn.seconds == NEVER:
            return "no history for gangs that run" if silent else "its pool has too few leaf cells"
        known = self._calibration.outcomes(drawn.seconds)
        seen = f"{known} of the {LEAST_OUTCOMES} half hours that are needed"
        return f"too little is known of waits like this ({bucket_of(drawn.seconds)}): {seen}"

    def median(self, gang: GangKey) -> float | None:
        """Return when a gang is expected to start, in seconds since 1970; None if unknown."""
        found = self._found.get(gang)
        expected = found.expected if found is not None else None
        return None if found is None or expected is None else found.at + expected.median

    def show(self, gang: GangKey) -> dict[str, Any]:
        """Show when a gang is expected to start, or why that is unknown."""
        forecast = self._found.get(gang)
        if forecast is None:
            return {"unknown": "not computed yet"}
        return show_start(forecast, coverage=self._rules().coverage)


def show_start(forecast: StartForecast, *, coverage: float) -> dict[str, Any]:
    """Show an expected start, and what it depends on."""
    shown: dict[str, Any] = {"computed": moment(forecast.at)}
    if forecast.place is not None:
        shown |= {"level": forecast.place.level, "place": forecast.place.level_place}
    if forecast.drawn.after:
        shown["after"] = [str(gang) for gang in forecast.drawn.after]
    if forecast.behind:
        shown["behindReservations"] = [str(gang) for gang in forecast.behind]
    expected = forecast.expected
    if expected is None:
        named = {"withoutHistory": list(forecast.silent)} if forecast.silent else {}
        return shown | {"unknown": forecast.unknown} | named
    return shown | {
        "median": moment(forecast.at + expected.median),
        "earliest": moment(forecast.at + expected.low),
        "latest": moment(forecast.at + expected.high),
        "coverage": coverage,
        "outcomes": expected.outcomes,
    }


def _outcome_of(told: Prediction, started: float) -> StartOutcome | None:
    """Return what became of a prediction; None if another release wrote it in another form."""
    told = {"drawn": told.get("median"), **told}  # an older release wrote no median of its own
    numbers: list[Any] = [
        told.get(name) for name in ("at", "drawn", "spread", "coverage", "low", "high")
    ]
    known = [float(one) for one in numbers if type(one) in (int, float)]
    if len(known) < len(numbers) or known[2] <= 0.0:
        return None
    at, drawn, spread, coverage, low, high = known
    actual = max(0.0, started - at)
    return StartOutcome(
        predicted=drawn,
        spread=spread,
        actual=actual,
        at=at,
        coverage=coverage,
        told=(low, high) if told.get("told") is True else None,
    )


def _to_prediction(forecast: StartForecast, run: FollowedRun, *, at: float) -> dict[str, Any]:
    expected, seconds = forecast.expected, forecast.drawn.seconds
    return {
        "at": at,
        "key": bucket_of(seconds),
        "size": size_class(run.keys.leaf_cells),
        "drawn": round(seconds, 3),
        "median": round(expected.median if expected else seconds, 3),
        "low": round(expected.low if expected else 0.0, 3),
        "high": round(expected.high if expected else seconds, 3),
        "told": expected is not None,
        "spread": round(forecast.drawn.spread, 3),
    }


def _without_history(copy: QueueCopy) -> Stepwise[tuple[str, ...]]:
    """Name some gangs that run and of which nothing is known."""
    silent: list[str] = []
    for number, gang in enumerate(copy.running):
        if gang.left(0.5, 0) is None:
            silent.append(str(gang.gang))
        if number % _AT_ONCE == 0:
            yield
    return tuple(sorted(silent)[:_MOST_NAMED])


def _reserved(copy: QueueCopy) -> dict[CopiedPool, list[GangKey]]:
    """Return for which gangs of each pool cells are reserved."""
    found: dict[CopiedPool, list[GangKey]] = {}
    for gang in copy.waiting:
        if gang.kept is not None:
            found.setdefault(gang.pool, []).append(gang.gang)
    return found


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
