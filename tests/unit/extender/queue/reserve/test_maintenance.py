"""Nodes in maintenance: which gangs start there before, and that none does during the window."""

from dataclasses import replace

import pytest

from extender.cells.model import ReasonCode
from extender.queue.forecast.model import RunTime
from policy.classes import NO_CLASSES
from policy.queues.queues import DEFAULT_QUEUES, Queues, RunTimeRules
from policy.queues.windows import MaintenanceWindow
from policy.submission import GangKey, NodeName
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang
from tests.support.queue.timed_world import TimedWorld

HOUR = 3600.0
START = 1000.0
FIRST, SECOND = NodeName("0"), NodeName("1")


def a_window(*nodes: str, begins: float = HOUR, ends: float = 2 * HOUR) -> MaintenanceWindow:
    return MaintenanceWindow(
        name="firmware",
        nodes=tuple(map(NodeName, nodes)),
        begins=START + begins,
        ends=START + ends,
        notice=HOUR,
    )


def a_world(*windows: MaintenanceWindow, **rules: object) -> TimedWorld:
    """Two nodes of four leaf cells, all promised to one VC."""
    cluster = a_cluster("2 nodes x 4").promising("a", node=2)
    queues = replace(DEFAULT_QUEUES, maintenance=windows, **rules)  # type: ignore[arg-type]
    return TimedWorld(cluster.build(), queues=queues)


def both(world: TimedWorld) -> list[str]:
    return sorted(world.nodes)


def one(name: str) -> GangBuilder:
    return a_gang(name).of(4)


def put(world: TimedWorld, *windows: MaintenanceWindow) -> None:
    queues: Queues = replace(world.planner.ranking.order.queues, maintenance=windows)
    world.planner.ranking.order.configure(queues, NO_CLASSES)
    for _ in world.planner.ranking.reorder():
        pass
    world.work()


def node_of(world: TimedWorld, gang: GangKey) -> str:
    placement = world.cells.placement(world._members[gang][0].member)
    assert placement is not None
    return placement.node


def reason(world: TimedWorld, gang: GangKey) -> tuple[ReasonCode, str]:
    noticed = world.planner._seen[gang].noticed
    assert noticed is not None
    return noticed.code, noticed.text


def test_a_gang_that_ends_in_time_starts_and_a_longer_one_waits_for_the_end_of_the_window() -> None:
    world = a_world()
    put(world, a_window(*both(world)))
    short = world.submit(one("short"), runs=HOUR / 2, limit=HOUR / 2)
    long = world.submit(one("long"), runs=2 * HOUR, limit=2 * HOUR)
    assert short in world.started
    assert long not in world.started
    code, text = reason(world, long)
    assert code is ReasonCode.MAINTENANCE
    assert f"node {both(world)[1]}, which it could use, is in maintenance window firmware" in text
    assert "until 1970-01-01T02:16:40Z" in text
    world.advance(1.5 * HOUR)
    assert long not in world.started
    world.advance(0.5 * HOUR)
    assert world.started[long] == START + 2 * HOUR


def test_other_nodes_are_used_meanwhile() -> None:
    world = a_world()
    first, second = both(world)
    put(world, a_window(first))
    long = world.submit(one("long"), runs=9 * HOUR, limit=9 * HOUR)
    assert node_of(world, long) == second


def test_during_the_window_no_gang_starts_however_short() -> None:
    world = a_world()
    put(world, a_window(*both(world)))
    world.advance(1.25 * HOUR)
    short = world.submit(one("short"), runs=1, limit=1)
    cheap = world.submit(one("cheap").at(-1), runs=1, limit=1)
    assert not world.started
    world.advance(HOUR)
    assert {short, cheap} <= world.started.keys()


def test_opportunistic_gangs_start_before_the_window_only_by_policy() -> None:
    world = a_world()
    window = a_window(*both(world))
    put(world, window)
    cheap = world.submit(one("cheap").at(-1), runs=9 * HOUR, limit=9 * HOUR)
    assert cheap not in world.started
    put(world, replace(window, opportunistic="allow"))
    assert cheap in world.started
    world.advance(1.25 * HOUR)
    assert world.submit(one("late").at(-1), runs=1, limit=1) not in world.started


def test_an_unknown_run_counts_as_the_longest_or_else_as_the_cap() -> None:
    for rules, starts in (
        (RunTimeRules(cap=HOUR / 2), True),
        (RunTimeRules(cap=2 * HOUR), False),
        (RunTimeRules(cap=HOUR / 2, longest={"default": 2 * HOUR}), False),
    ):
        world = a_world(run_time=rules)
        put(world, a_window(*both(world)))
        assert (world.submit(one("unknown"), runs=1) in world.started) is starts


def test_a_gang_starts_before_a_window_as_soon_as_it_is_known_to_end_in_time() -> None:
    world = a_world(run_time=RunTimeRules(cap=2 * HOUR))
    put(world, a_window(*both(world)))
    gangs = [world.submit(one(f"gang{place}"), runs=60) for place in range(2)]
    assert not world.started
    known = RunTime(median=60, high=60, runs=10)
    world.run_times.of[gangs[0]] = known
    for _ in range(2):
        world.advance(2)
    assert list(world.started) == [gangs[0]]
    order = world.planner.ranking.order
    order.configure(replace(order.queues, run_time=RunTimeRules(cap=HOUR / 2)), NO_CLASSES)
    world.work()
    assert gangs[1] in world.started


def test_a_window_over_missing_nodes_or_in_the_past_does_no_harm() -> None:
    world = a_world(a_window("gone"), replace(a_window("0", begins=-900, ends=-800), name="past"))
    assert world.submit(one("a"), runs=9 * HOUR, limit=9 * HOUR) in world.started


def test_a_clock_that_jumps_is_no_trap() -> None:
    world = a_world()
    put(world, a_window(*both(world)))
    world.now = START + 1.5 * HOUR
    gang = world.submit(one("a"), runs=60, limit=60)
    assert gang not in world.started
    world.now = START  # back before the window: the gang ends in time
    world.work()
    assert gang in world.started
    world.advance(120)
    world.now = START + HOUR
    late = world.submit(one("b"), runs=60, limit=60)
    assert late not in world.started
    world.now = START + 5 * HOUR  # over the whole rest of the window
    world.work()
    assert late in world.started


def test_a_document_that_changes_in_the_middle_of_a_window_counts_at_once() -> None:
    world = a_world()
    put(world, a_window(*both(world)))
    world.advance(1.25 * HOUR)
    gang = world.submit(one("a"), runs=60, limit=60)
    assert gang not in world.started
    put(world)
    assert gang in world.started


def test_nodes_are_found_by_their_labels() -> None:
    world = a_world()
    first, second = both(world)
    put(world, replace(a_window(), labels=(("rack", "r1"),)))
    world.planner.reservations.calendar.note_nodes({"firmware": [NodeName(first)]})
    gang = world.submit(one("a"), runs=9 * HOUR, limit=9 * HOUR)
    assert node_of(world, gang) == second
    other = world.submit(one("b"), runs=9 * HOUR, limit=9 * HOUR)
    assert other not in world.started
    world.planner.reservations.calendar.note_nodes({})
    world.work()
    assert other in world.started


def test_a_head_is_promised_no_start_that_a_window_makes_impossible() -> None:
    world = a_world()
    put(world, a_window(*both(world), begins=2 * HOUR, ends=3 * HOUR))
    for name in ("old0", "old1"):
        world.submit(one(name), runs=HOUR, predicted=HOUR)
    large = world.submit(a_gang("large").times(2, 4), runs=1.5 * HOUR, limit=1.5 * HOUR)
    world.advance(700)
    assert world.planner.reservations.in_force() == []
    short = world.submit(a_gang("short").times(2, 4), runs=HOUR, limit=HOUR)
    world.advance(1.9 * HOUR)
    assert short in world.started
    world.advance(START + 3 * HOUR - world.now)
    assert world.started[large] == START + 3 * HOUR


@pytest.mark.parametrize("ignores", [True, False])
def test_gangs_that_ignore_candidate_nodes_respect_windows(ignores: bool) -> None:
    world = a_world()
    put(world, a_window(*both(world)))
    gang = one("a") if ignores else one("a").strict()
    assert world.submit(gang, runs=9 * HOUR, limit=9 * HOUR) not in world.started
