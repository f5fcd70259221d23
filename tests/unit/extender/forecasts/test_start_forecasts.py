"""Expected starts of waiting gangs, over a cluster of 32 leaf cells that VC lab was promised."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from extender.cells.views.listings import run_to_end
from extender.forecasts.forecast_loop import ForecastLoop
from extender.queue.forecast.copied_gangs import KeptCells
from policy.policy import Policy, build
from policy.queues.queues import DEFAULT_QUEUES, RunTimeRules
from policy.queues.who import Who
from policy.queues.windows import AdvanceReservation, MaintenanceWindow
from policy.submission import GangKey, VcName
from service.clock import Clock
from state.history.facts import GangFacts
from state.history.predictions import PastRun
from tests.support.extender.run_world import RunWorld
from tests.support.queue.given_queue import GivenQueue
from tests.support.state.charges import TERM
from tests.support.twins.outlook import MemoryOutlook

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
            term=lambda: TERM,
            clock=Clock(monotonic=lambda: 0.0, now=lambda: self.now),
            registry=self.registry,
        )
        self.starts = self.loop.starts
        self.queue = self.starts.queue = GivenQueue()

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
            told |= {"spread": 0.5, "coverage": 0.8}
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


async def test_windows_are_counted_as_leaf_cells_that_pools_lack() -> None:
    noon = _NOON.timestamp()
    nodes = tuple(RunWorld().leader.shell.cluster.nodes)
    window = MaintenanceWindow(
        name="all", nodes=nodes, begins=noon + 60, ends=noon + 7200, notice=0.0
    )
    entry = AdvanceReservation(
        name="night",
        vc=VcName("lab"),
        members=1,
        leaf_cells=8,
        who=Who(users=frozenset({"bob"})),
        begins=noon,
        ends=noon + 3600,
    )
    queues = replace(DEFAULT_QUEUES, maintenance=(window,), reservations=(entry,))
    world = _World(replace(build({}), queues=queues))
    world.learn(40)
    world.follow("waits", cells=8, started=None)
    copy = run_to_end(world.loop.copier.copy([_gang("waits")], now=noon))
    found = {(one.name, one.pool[0]): (one.leaf_cells, one.ends) for one in copy.closures}
    assert found == {
        ("maintenance all", "all"): (32, 7200.0),
        ("maintenance all", "lab"): (32, 7200.0),
        ("reservation night", "lab"): (8, 3600.0),
    }
    assert copy.waiting[0].exempt == frozenset()
    world.follow("bobs", cells=8, started=None, user_name="bob")
    copy = run_to_end(world.loop.copier.copy([_gang("bobs")], now=noon))
    assert copy.waiting[0].exempt == {"reservation night"}
    over = run_to_end(world.loop.copier.copy([_gang("bobs")], now=noon + 7200))
    assert over.closures == []


async def test_a_gang_is_expected_after_those_that_hold_its_cells() -> None:
    world = _World()
    world.learn(40)
    world.follow("runs", cells=32, started=600)
    world.follow("waits", cells=8, started=None)
    world.queue.gangs = [_gang("waits")]
    await world.starts.update(stamp="1")
    shown = world.starts.show(_gang("waits"))
    assert shown["after"] == ["lab/runs"]
    assert shown["outcomes"] == 40
    median = datetime.fromisoformat(shown["median"]) - _NOON
    assert timedelta(minutes=20) < median < timedelta(hours=3)
    assert shown["earliest"] <= shown["median"] <= shown["latest"]


async def test_a_gang_is_not_expected_after_one_that_cannot_start() -> None:
    world = _World()
    world.learn(40)
    world.follow("runs", cells=32, started=600)
    world.follow("stuck", cells=32, started=None)
    world.follow("waits", cells=32, started=None)
    world.queue.gangs = [_gang("stuck"), _gang("waits")]
    await world.starts.update(stamp="1")
    assert world.starts.show(_gang("waits"))["after"] == ["lab/stuck"]
    world.queue.stuck = {_gang("stuck")}
    await world.starts.update(stamp="1")
    assert world.starts.show(_gang("waits"))["after"] == ["lab/runs"]


async def test_a_gang_of_a_vc_without_cells_waits_for_those_of_the_cluster() -> None:
    world = _World()
    world.learn(40)
    facts = {"vc": "guests", "estimate_seconds": None}
    world.follow("runs", cells=32, started=600, limit_seconds=4200, **facts)
    world.follow("waits", cells=8, started=None, limit_seconds=3000, **facts)
    world.queue.gangs = [_gang("waits")]
    await world.starts.update(stamp="1")
    shown = world.starts.show(_gang("waits"))
    assert shown["median"] == "2026-03-01T13:00:00Z"
    assert shown["after"] == ["lab/runs"]


async def test_new_gangs_of_a_vc_without_cells_may_expect_those_of_the_cluster() -> None:
    world = _World()
    world.learn(40)
    store = MemoryOutlook()
    world.loop.outlooks.use(store)
    facts = {"vc": "guests", "estimate_seconds": None, "limit_seconds": 4200}
    world.follow("runs", cells=30, started=600, **facts)
    await world.starts.update(stamp="1")
    await world.loop.outlooks.write()
    assert store.outlook is not None
    entries = [entry for entry in store.outlook.entries if not entry.starts_at_once]
    found = {(entry.vc, entry.leaf_cells) for entry in entries}
    assert found == {("guests", size) for size in (4, 8, 16, 32)}


async def test_without_a_cluster_document_all_gangs_wait_for_the_cells_of_the_nodes() -> None:
    world = _World()
    world.runs.leader.shell.cluster.use_document(None)
    world.learn(40)
    store = MemoryOutlook()
    world.loop.outlooks.use(store)
    world.follow("runs", cells=30, started=600, estimate_seconds=None, limit_seconds=4200)
    world.follow("waits", cells=8, started=None, estimate_seconds=None, limit_seconds=3000)
    world.queue.gangs = [_gang("waits")]
    await world.starts.update(stamp="1")
    assert world.starts.show(_gang("waits"))["median"] == "2026-03-01T13:00:00Z"
    await world.loop.outlooks.write()
    assert store.outlook is not None
    assert {entry.leaf_cells for entry in store.outlook.entries} >= {4, 8, 16, 32}


async def test_without_outcomes_the_start_is_unknown_and_still_recorded() -> None:
    world = _World()
    world.follow("runs", cells=32, started=600)
    world.follow("waits", cells=8, started=None)
    world.queue.gangs = [_gang("waits")]
    await world.starts.update(stamp="1")
    shown = world.starts.show(_gang("waits"))
    assert shown["unknown"] == (
        "too little is known of waits like this (below 4 h): 0 of the 30 half hours that are needed"
    )
    assert set(world.loop.run_times.take_predicted()) == {"waits"}


async def test_a_start_behind_a_run_of_which_nothing_is_known_is_unknown() -> None:
    world = _World()
    world.learn(40)
    world.follow("runs", cells=32, started=600, estimate_seconds=None)
    world.follow("waits", cells=8, started=None)
    world.queue.gangs = [_gang("waits")]
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
    world.queue.gangs = [_gang("waits")]
    await world.starts.update(stamp="1")
    assert world.starts.show(_gang("waits"))["median"] == "2026-03-01T13:00:00Z"


async def test_a_gang_that_does_not_exist_comes_behind_those_of_its_class() -> None:
    world = _World()
    world.learn(40)
    world.follow("runs", cells=32, started=600, estimate_seconds=None, limit_seconds=1200)
    world.follow("waits", cells=32, started=None, estimate_seconds=None, limit_seconds=3000)
    world.queue.gangs = [_gang("waits")]
    run = world.loop.run_times.run_of(_gang("waits"))
    assert run is not None
    shown = await world.starts.show_would_start(replace(run, run="", gang=_gang("new")))
    assert shown["median"] == "2026-03-01T13:00:00Z"
    assert shown["after"] == ["lab/waits"]


async def test_outcomes_are_learned_when_gangs_start() -> None:
    world = _World()
    world.learn(40)
    world.follow("runs", cells=32, started=600)
    world.follow("waits", cells=8, started=None)
    world.queue.gangs = [_gang("waits")]
    await world.starts.update(stamp="1")
    coverage = "cellgate_extender_expected_start_coverage"
    assert world.registry.get_sample_value(coverage) == 1.0
    world.now = _NOON + timedelta(days=3)
    world.follow("waits", cells=8, started=0)
    assert world.registry.get_sample_value(coverage) == pytest.approx(20 / 21)


async def test_a_gang_behind_a_reservation_is_told_so() -> None:
    world = _World()
    world.learn(40)
    world.follow("runs", cells=32, started=600, estimate_seconds=None, limit_seconds=1200)
    world.follow("head", cells=32, started=None, estimate_seconds=None, limit_seconds=3000)
    world.follow("waits", cells=8, started=None, estimate_seconds=None, limit_seconds=3000)
    world.queue.gangs = [_gang("head"), _gang("waits")]
    holders = frozenset({_gang("runs")})
    world.queue.kept = {_gang("head"): KeptCells(deadline=600.0, holders=holders)}
    await world.starts.update(stamp="1")
    assert world.starts.show(_gang("waits"))["behindReservations"] == ["lab/head"]
    assert world.starts.show(_gang("waits"))["median"] == "2026-03-01T13:00:00Z"
    assert "behindReservations" not in world.starts.show(_gang("head"))
    assert world.starts.show(_gang("head"))["after"] == ["lab/runs"]


async def test_what_new_gangs_may_expect_is_written_for_webhooks() -> None:
    world = _World()
    world.learn(40)
    store = MemoryOutlook()
    world.loop.outlooks.use(store)
    world.follow("runs", cells=30, started=600, estimate_seconds=None, limit_seconds=4200)
    await world.starts.update(stamp="1")
    await world.loop.outlooks.write()
    assert store.outlook is not None
    assert store.outlook.computed_at == _NOON
    sizes = {entry.leaf_cells: entry for entry in store.outlook.entries}
    at_once = {size for size, entry in sizes.items() if entry.starts_at_once}
    assert (at_once, set(sizes)) == ({1, 2}, {1, 2, 4, 8, 16, 32})
    entry = sizes[8]
    assert (entry.vc, entry.level, entry.place) == ("lab", "default", 1)
    assert entry.low <= _NOON.timestamp() + 3600 <= entry.high
    assert world.starts.show(GangKey("", "lab//8")) == {"unknown": "not computed yet"}


async def test_no_gang_waits_for_an_outlook_that_cannot_be_written() -> None:
    world = _World()
    world.loop.outlooks.use(MemoryOutlook(fails=True))
    world.follow("runs", cells=32, started=600)
    world.follow("waits", cells=8, started=None)
    world.queue.gangs = [_gang("waits")]
    await world.starts.update(stamp="1")
    await world.loop.outlooks.write()
    assert "unknown" in world.starts.show(_gang("waits"))


async def test_gangs_that_come_while_the_queue_is_copied_do_not_break_the_copy() -> None:
    world = _World()
    for index in range(120):
        world.follow(f"runs-{index}", cells=1, started=600)
    steps = world.loop.copier.copy([], now=_NOON.timestamp())
    for _ in range(3):
        next(steps)
    world.follow("comes", cells=1, started=None)
    assert len(run_to_end(steps).running) == 120


async def test_a_gang_that_waits_for_something_else_holds_no_cells_in_the_copy() -> None:
    world = _World()
    world.follow("runs", cells=16, started=600)
    world.follow("held", cells=16, started=None)  # by its user, or it waits for quota
    world.follow("waits", cells=16, started=None)
    copy = run_to_end(world.loop.copier.copy([_gang("waits")], now=_NOON.timestamp()))
    assert [gang.gang.name for gang in copy.running] == ["runs"]
    assert copy.free["lab", "A100"] == 16


@pytest.mark.parametrize(
    "bad",
    [{}, {"median": None}, {"median": "soon"}, {"spread": 0}, {"at": None}, {"high": True}],
)
async def test_a_prediction_in_another_form_teaches_nothing(bad: dict[str, Any]) -> None:
    world = _World()
    good = {"at": 1.0, "median": 90.0, "low": 1.0, "high": 200.0, "told": True}
    told = good | {"spread": 0.5, "coverage": 0.8} | bad if bad else {}
    past = PastRun(
        run="old",
        gang="lab/old",
        user_name=None,
        vc=None,
        workload=None,
        image=None,
        leaf_count=None,
        outcome=None,
        started_at=_NOON,
        ended_at=_NOON,
        start=told,
    )
    world.starts.learn_past([past])
    assert world.registry.get_sample_value(
        "cellgate_extender_expected_start_coverage"
    ) != pytest.approx(1.0, abs=1.0)
