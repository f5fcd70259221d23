"""Gangs that certainly lack leaf cells are not planned again, and every other gang is."""

import pytest

from extender.cells.model import OPPORTUNISTIC, ReasonCode
from extender.queue.reserve.gaps import run_class, shortest_run
from policy.queues.alternatives import Alternative
from policy.submission import GangKey, VcName
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang
from tests.support.queue.timed_world import TimedWorld

HOUR = 3600.0


def a_world() -> TimedWorld:
    """Four nodes of four leaf cells, two promised to each of two VCs, all in use."""
    cluster = a_cluster("4 nodes x 4").promising("a", node=2).promising("b", node=2)
    world = TimedWorld(cluster.build())
    for vc in "ab":
        for hour in (1, 2):
            world.submit(_gang(f"{vc}{hour}", 4, vc=vc), runs=hour * HOUR, predicted=hour * HOUR)
    return world


def _gang(name: str, *sizes: int, vc: str = "a") -> GangBuilder:
    return a_gang(name).in_vc(vc).of(*sizes)


def _plans(world: TimedWorld, seconds: float) -> int:
    before = world.cells.asked
    world.advance(seconds)
    return world.cells.asked - before


def test_an_event_plans_the_head_and_what_it_may_help() -> None:
    world = a_world()
    world.submit(_gang("head", 4, 4), runs=HOUR)
    for number in range(20):
        world.submit(_gang(f"large{number}", 4, 1 + number % 4), runs=HOUR)
    small = world.submit(_gang("small", 2), runs=HOUR)
    world.advance(300)
    assert _plans(world, HOUR - 300) <= 6  # the head, the small gang, those that ask for 5 or 6
    assert world.started[small] == 1000 + HOUR


def test_a_gang_is_told_the_reason_that_holds_now() -> None:
    world = a_world()
    head = world.submit(_gang("head", 4, 4), runs=HOUR)
    behind = world.submit(_gang("later", 4), runs=9 * HOUR)
    world.advance(900)
    assert world.planner.reservations.find(head) is not None
    assert _code(world, behind) is ReasonCode.VC_FULL
    world.advance(HOUR)
    assert _code(world, behind) is ReasonCode.RESERVED


def _code(world: TimedWorld, gang: GangKey) -> ReasonCode | None:
    noticed = world.planner._seen[gang].noticed
    return None if noticed is None else noticed.code


def test_leaf_cells_of_gangs_that_may_end_count() -> None:
    world = a_world()
    request = _gang("any", 4).member(0)
    assert world.cells.most_leaf_cells(request) == 0
    higher = a_gang("higher").in_vc("a").of(4).at(5).member(0)
    assert world.cells.most_leaf_cells(higher) is None
    assert (
        world.cells.most_leaf_cells(a_gang("o").in_vc("a").of(4).at(OPPORTUNISTIC).member(0)) == 0
    )
    world.advance(HOUR)
    assert world.cells.most_leaf_cells(request) == 4


def test_a_gang_starts_in_another_form_although_its_first_one_lacks_cells() -> None:
    world = TimedWorld(
        a_cluster("4 nodes x 4").promising("a", node=2).promising("b", node=2).build()
    )
    for hour in (1, 2):
        world.submit(_gang(f"a{hour}", 4), runs=9 * HOUR, predicted=9 * HOUR)
        world.submit(_gang(f"b{hour}", 4, vc="b"), runs=hour * HOUR, predicted=hour * HOUR)
    world.submit(_gang("head", 4, 4), runs=HOUR)
    other = (Alternative(vc=VcName("b")),)
    gang = world.submit(_gang("later", 2), runs=HOUR, alternatives=other)
    world.advance(HOUR)
    assert world.started[gang] == 1000 + HOUR


def test_reserved_cells_that_guests_use_are_kept_from_other_gangs() -> None:
    """They count as left to the VC, and a gang that asked for them was planned at each event."""
    world = TimedWorld(a_cluster("3 nodes x 4").promising("a", node=3).build())
    for hour in (1, 5, 9):
        world.submit(_gang(f"a{hour}", 4), runs=hour * HOUR, predicted=hour * HOUR)
    head = world.submit(_gang("head", 4, 4), runs=HOUR)
    behind = world.submit(_gang("later", 3), runs=99 * HOUR)
    world.advance(900)
    assert world.planner.reservations.find(head) is not None
    world.advance(HOUR - 900)
    guest = world.submit(_gang("guest", 4).at(OPPORTUNISTIC), runs=99 * HOUR)
    assert guest in world.started
    world.advance(900)
    assert _code(world, behind) is ReasonCode.RESERVED
    request = _gang("more", 3).member(0)
    kept = world.cells.kept_cells(VcName("a"), world.planner.reservations.in_force()[0].kept)
    assert world.cells.most_leaf_cells(request) == 4
    assert world.cells.most_leaf_cells(request, kept) == 0


def test_a_reason_that_holds_again_needs_no_plan() -> None:
    world = a_world()
    world.submit(_gang("head", 4, 4), runs=HOUR)
    behind = world.submit(_gang("later", 4), runs=9 * HOUR)
    world.planner._bounds._misled[behind] = None
    before = world.cells.asked
    world.planner._bounds.correct(now=world.now + HOUR)
    world.work()
    assert world.cells.asked == before


@pytest.mark.parametrize("seconds", [0.0, 1.0, 1.5, 60.0, 3600.0, 1e6])
def test_no_run_is_shorter_than_its_class(seconds: float) -> None:
    assert shortest_run(run_class(seconds)) <= seconds


def test_a_reason_that_changed_is_corrected_soon_and_not_at_each_event() -> None:
    world = a_world()
    world.submit(_gang("head", 4, 4), runs=HOUR)
    behind = world.submit(_gang("later", 4), runs=9 * HOUR)
    world.advance(900)
    world.planner._bounds.correct(now=world.now + HOUR)  # the next second begins after the event
    world.planner._bounds._correct_at = world.now + HOUR
    world.advance(HOUR - 900)
    assert _code(world, behind) is ReasonCode.VC_FULL
    world.advance(1000)
    assert _code(world, behind) is ReasonCode.RESERVED
