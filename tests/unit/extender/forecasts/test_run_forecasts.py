"""Run times of gangs, learned from the history and from runs as they are recorded."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from extender.forecasts.run_forecasts import RunForecasts
from policy.queues.queues import DEFAULT_QUEUES, Queues, RunTimeRules
from policy.submission import GangKey
from service.clock import Clock
from state.history.facts import GangFacts
from tests.support.twins.history import MemoryHistory

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_GANG = GangKey("lab", "bert-9")


def _facts(number: int, *, ended: float | None = 600.0, **told: Any) -> GangFacts:
    started = _NOON - timedelta(hours=100 - number)
    facts: dict[str, Any] = {
        "gang": f"lab/bert-{number}",
        "user_name": "alice",
        "vc": "lab",
        "leaf_count": 8,
        "asked_at": started - timedelta(minutes=5),
        "started_at": started,
        "ended_at": None if ended is None else started + timedelta(seconds=ended),
        "outcome": None if ended is None else "succeeded",
        **told,
    }
    return GangFacts(run=f"r{number}", **facts)


def _waiting(**told: Any) -> GangFacts:
    return _facts(99, ended=None, started_at=None, gang=str(_GANG), **told)


class _World:
    def __init__(self, *past: GangFacts, queues: Queues = DEFAULT_QUEUES) -> None:
        self.history = MemoryHistory()
        for facts in past:
            self.history.runs.record(facts)
        self.now = _NOON
        clock = Clock(monotonic=lambda: 0.0, now=lambda: self.now)
        self.forecasts = RunForecasts(self.history, queues=lambda: queues, clock=clock)


async def test_past_runs_tell_how_long_a_gang_will_run() -> None:
    world = _World(*(_facts(number) for number in range(8)))
    await world.forecasts.load()
    world.forecasts.follow(_GANG, _waiting(), stamp="1")
    time = world.forecasts.expected(_GANG)
    assert time.median == pytest.approx(600, rel=0.05)
    assert time.runs == 8


async def test_runs_that_end_are_learned() -> None:
    world = _World()
    await world.forecasts.load()
    world.forecasts.follow(_GANG, _waiting(), stamp="1")
    assert not world.forecasts.expected(_GANG).is_known
    for number in range(6):
        gang = GangKey("lab", f"bert-{number}")
        world.forecasts.follow(gang, _facts(number, ended=None), stamp="1")
        world.forecasts.follow(gang, _facts(number, ended=1200.0), stamp="2")
    assert world.forecasts.expected(_GANG).median == pytest.approx(1200, rel=0.05)
    assert len(world.forecasts.followed) == 1


async def test_a_preempted_run_is_not_learned_as_a_whole_one() -> None:
    world = _World(*(_facts(number) for number in range(6)))
    await world.forecasts.load()
    world.forecasts.follow(_GANG, _waiting(), stamp="1")
    world.forecasts.follow(_GANG, _facts(99, ended=None, gang=str(_GANG)), stamp="2")
    cut = replace(_facts(99, ended=1.0, gang=str(_GANG)), outcome="preempted")
    world.forecasts.follow(_GANG, cut, stamp="3")
    assert world.forecasts.book.learned == 6


async def test_a_run_is_predicted_once_when_it_starts() -> None:
    world = _World(*(_facts(number) for number in range(6)))
    await world.forecasts.load()
    assert world.forecasts.follow(_GANG, _waiting(), stamp="1") == {}
    started = _facts(99, ended=None, gang=str(_GANG))
    told = world.forecasts.follow(_GANG, started, stamp="2")
    assert told["runTime"]["stamp"] == "2"
    assert told["runTime"]["key"] == "user, name, image and size"
    assert told["runTime"]["median"] == pytest.approx(600, rel=0.05)
    assert world.forecasts.follow(_GANG, started, stamp="3") == told
    assert world.forecasts.follow(_GANG, _facts(99, gang=str(_GANG)), stamp="4") == told


async def test_runs_that_were_described_before_the_history_was_read_are_followed() -> None:
    world = _World(*(_facts(number) for number in range(6)))
    assert world.forecasts.follow(_GANG, _waiting(), stamp="1") == {}
    assert not world.forecasts.expected(_GANG).is_known
    await world.forecasts.load()
    assert world.forecasts.expected(_GANG).is_known


async def test_without_a_history_yet_limits_are_known_and_ended_runs_leave_nothing() -> None:
    forecasts = _World().forecasts
    forecasts.follow(_GANG, _waiting(limit_seconds=600), stamp="1")
    assert forecasts.expected(_GANG).limit == 600
    for number in range(3):
        gang = GangKey("lab", f"bert-{number}")
        forecasts.follow(gang, _facts(number, ended=None), stamp="1")
        forecasts.follow(gang, _facts(number), stamp="2")
    assert list(forecasts._early) == [run.run for run in forecasts.followed] == ["r99"]
    forecasts.retain([])
    assert not forecasts._early
    await forecasts.load()
    assert not forecasts.followed


async def test_an_unavailable_history_is_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _World(*(_facts(number) for number in range(6)))
    world.history.is_away = True

    async def come_back(_: float) -> None:
        world.history.is_away = False

    monkeypatch.setattr("extender.forecasts.run_forecasts.asyncio.sleep", come_back)
    assert len(await world.forecasts.load()) == 6


async def test_what_is_left_of_a_run_respects_its_limit_and_its_class() -> None:
    rules = RunTimeRules(longest={"prod": 7200.0})
    world = _World(queues=replace(DEFAULT_QUEUES, run_time=rules))
    await world.forecasts.load()
    facts = _facts(99, ended=None, gang=str(_GANG), started_at=_NOON, limit_seconds=3600)
    world.forecasts.follow(_GANG, replace(facts, granted_class="prod"), stamp="1")
    world.now = _NOON + timedelta(minutes=10)
    time = world.forecasts.remaining(_GANG, now=0.0)
    assert (time.limit, time.high) == (3000, 6600)
    assert world.forecasts.expected(_GANG).limit == 3600


async def test_runs_under_a_name_that_is_gone_are_forgotten() -> None:
    world = _World()
    await world.forecasts.load()
    world.forecasts.follow(_GANG, _waiting(), stamp="1")
    world.forecasts.retain(["another"])
    assert list(world.forecasts.followed) == []
    assert world.forecasts.run_of(_GANG) is None
