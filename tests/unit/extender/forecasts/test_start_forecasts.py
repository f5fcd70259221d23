"""Expected starts of waiting gangs, over a cluster of 32 leaf cells that VC lab was promised."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from extender.forecasts.forecast_loop import ForecastLoop
from policy.policy import Policy, build
from policy.queues.queues import DEFAULT_QUEUES, RunTimeRules
from policy.submission import GangKey
from service.clock import Clock
from state.history.facts import GangFacts
from state.history.predictions import PastRun
from tests.support.extender.run_world import RunWorld

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _gang(name: str) -> GangKey:
    return GangKey("lab", name)


class _World:
    def __init__(self, policy: Policy | None = None) -> None:
        self.runs = RunWorld()
        self.now = _NOON
        self.registry = CollectorRegistry()
        known = policy or build({})
        self.loop = ForecastLoop(
            self.runs.leader.recorder,
            None,
            cluster=self.runs.leader.shell.cluster,
            policy=lambda: known,
            clock=Clock(monotonic=lambda: 0.0, now=lambda: self.now),
            registry=self.registry,
        )
        self.starts = self.loop.starts

    def follow(self, name: str, *, cells: int, started: float | None, **told: Any) -> None:
        """A gang waits, or has run for so many seconds."""
        facts: dict[str, Any] = {"vc": "lab", "user_name": "alice", "estimate_seconds": 3600}
        since = None if started is None else self.now - timedelta(seconds=started)
        run = GangFacts(
            run=name,
            gang=f"lab/{name}",
            asked_at=_NOON,
            leaf_count=cells,
            started_at=since,
            **facts | told,
        )
        self.loop.run_times.follow(_gang(name), run, stamp="1")

    def learn(self, number: int) -> None:
        """So many gangs have started, each as was predicted."""
        for index in range(number):
            started = _NOON - timedelta(hours=number - index)
            at = started.timestamp() - 3000
            told = {"at": at, "median": 3000.0, "low": 1.0, "high": 9000.0, "told": index % 2 == 0}
            past = PastRun(
                run=f"old-{index}",
                gang=f"lab/old-{index}",
                user_name="alice",
                vc="lab",
                workload=None,
                image=None,
                leaf_count=8,
                outcome="succeeded",
                started_at=started,
                ended_at=started,
                start=told,
            )
            self.starts.learn_past([past])


async def test_a_gang_is_expected_after_those_that_hold_its_cells() -> None:
    world = _World()
    world.learn(40)
    world.follow("runs", cells=32, started=600)
    world.follow("waits", cells=8, started=None)
    world.loop.order = lambda: [_gang("waits")]
    await world.starts.update(stamp="1")
    shown = world.starts.show(_gang("waits"))
    assert shown["after"] == ["lab/runs"]
    assert shown["outcomes"] == 40
    median = datetime.fromisoformat(shown["median"]) - _NOON
    assert timedelta(minutes=20) < median < timedelta(hours=3)
    assert shown["earliest"] <= shown["median"] <= shown["latest"]


async def test_without_outcomes_the_start_is_unknown_and_still_recorded() -> None:
    world = _World()
    world.follow("runs", cells=32, started=600)
    world.follow("waits", cells=8, started=None)
    world.loop.order = lambda: [_gang("waits")]
    await world.starts.update(stamp="1")
    shown = world.starts.show(_gang("waits"))
    assert shown["unknown"] == "no history for waits below 4 h: 0 of 30 outcomes that are needed"
    assert set(world.loop.run_times.take_predicted()) == {"waits"}


async def test_a_start_behind_a_run_of_which_nothing_is_known_is_unknown() -> None:
    world = _World()
    world.learn(40)
    world.follow("runs", cells=32, started=600, estimate_seconds=None)
    world.follow("waits", cells=8, started=None)
    world.loop.order = lambda: [_gang("waits")]
    await world.starts.update(stamp="1")
    shown = world.starts.show(_gang("waits"))
    assert shown["unknown"] == "no history for gangs that run"
    assert shown["withoutHistory"] == ["lab/runs"]
    assert world.starts.show(_gang("other")) == {"unknown": "not computed yet"}


async def test_the_longest_run_of_a_class_bounds_what_is_unknown() -> None:
    rules = RunTimeRules(longest={"default": 4200.0})
    world = _World(replace(build({}), queues=replace(DEFAULT_QUEUES, run_time=rules)))
    world.learn(40)
    world.follow("runs", cells=32, started=600, estimate_seconds=None)
    world.follow("waits", cells=8, started=None)
    world.loop.order = lambda: [_gang("waits")]
    await world.starts.update(stamp="1")
    assert world.starts.show(_gang("waits"))["median"] == "2026-03-01T13:00:00+00:00"


async def test_a_gang_that_does_not_exist_comes_behind_those_of_its_class() -> None:
    world = _World()
    world.learn(40)
    world.follow("runs", cells=32, started=600, estimate_seconds=None, limit_seconds=1200)
    world.follow("waits", cells=32, started=None, estimate_seconds=None, limit_seconds=3000)
    world.loop.order = lambda: [_gang("waits")]
    run = world.loop.run_times.run_of(_gang("waits"))
    assert run is not None
    shown = await world.starts.show_would_start(replace(run, run="", gang=_gang("new")))
    assert shown["median"] == "2026-03-01T13:00:00+00:00"
    assert shown["after"] == ["lab/waits"]


async def test_outcomes_are_learned_when_gangs_start() -> None:
    world = _World()
    world.learn(40)
    world.follow("runs", cells=32, started=600)
    world.follow("waits", cells=8, started=None)
    world.loop.order = lambda: [_gang("waits")]
    await world.starts.update(stamp="1")
    coverage = "cellgate_extender_expected_start_coverage"
    assert world.registry.get_sample_value(coverage) == 1.0
    world.now = _NOON + timedelta(days=3)
    world.follow("waits", cells=8, started=0)
    assert world.registry.get_sample_value(coverage) == pytest.approx(20 / 21)
