"""Reservations whose gang, or whose document, changes while the cells are reserved."""

from dataclasses import replace

from extender.cells.views.listings import run_to_end
from extender.queue.reserve.model import ReservationEnd
from policy.classes import NO_CLASSES
from policy.queues.queues import ReservationRules
from tests.support.cells.builders import a_gang
from tests.support.queue.large_gang import (
    AFTER,
    HOUR,
    LARGE,
    a_full_world,
    a_world,
    key,
    small,
)
from tests.support.queue.timed_world import TimedWorld


def configure(world: TimedWorld, **rules: object) -> None:
    """Apply another document, and let a second pass."""
    order = world.planner.ranking.order
    order.configure(replace(order.queues, **rules), NO_CLASSES)  # type: ignore[arg-type]
    run_to_end(world.planner.ranking.reorder())
    world.advance(2)
    world.work()


def change(world: TimedWorld, gang: str, sizes: tuple[int, ...], **asked: object) -> None:
    """Let the pods of a gang state other things than before."""
    pods = [pod for pod in world.pods.values() if pod.request.gang == key(gang)]
    for pod, size in zip(pods, sizes, strict=True):
        request = replace(pod.request, gang_leaf_counts=sizes, leaf_count=size, **asked)  # type: ignore[arg-type]
        other = replace(pod, request=request, gang_size=len(sizes))
        world.pods[pod.uid] = other
        world.planner.see(other)
    world.work()


def test_a_document_without_reservations_ends_those_that_were_made() -> None:
    world = a_full_world()
    world.advance(1.5 * HOUR)
    long = world.submit(small("long"), runs=9 * HOUR)
    assert long not in world.started
    configure(world, reservation=ReservationRules(per_pool=0))
    assert world.planner.reservations.in_force() == []
    assert world.changes[-1].end is ReservationEnd.TOO_MANY
    assert long in world.started


def test_with_fewer_reservations_in_each_pool_the_oldest_stay() -> None:
    world = a_world(reservation=ReservationRules(per_pool=2))
    for hour in range(1, 5):
        world.submit(small(f"old{hour}"), runs=hour * HOUR, predicted=hour * HOUR)
    world.submit(a_gang("large").times(2, 4), runs=HOUR)
    world.submit(a_gang("next").times(2, 4), runs=HOUR)
    world.advance(AFTER)
    world.settle()
    assert len(world.planner.reservations.in_force()) == 2
    configure(world, reservation=ReservationRules(per_pool=1))
    assert [one.gang for one in world.planner.reservations.in_force()] == [key("large")]


def test_a_gang_that_became_opportunistic_keeps_no_cells_of_its_vc() -> None:
    world = a_full_world()
    world.advance(1.5 * HOUR)
    assert world.submit(small("long"), runs=9 * HOUR) not in world.started
    change(world, "large", (4, 4, 4, 4), priority=-1)
    world.advance(2)
    world.work()
    ends = [one.end for one in world.changes if one.end is not None]
    assert ends == [ReservationEnd.CHANGED]
    assert key("long") in world.started


def test_a_gang_that_grows_gets_more_cells_reserved_at_once() -> None:
    world = a_world()
    for hour in range(1, 5):
        world.submit(small(f"old{hour}"), runs=hour * HOUR, predicted=hour * HOUR)
    world.submit(a_gang("large").of(4, 1), runs=HOUR)
    world.advance(AFTER)
    change(world, "large", (4, 4))
    world.advance(2)
    world.settle()
    (one,) = world.planner.reservations.in_force()
    assert [len(seat.leaves) for seat in one.seats] == [4, 4]


def test_promises_of_a_wrong_clock_are_not_kept() -> None:
    """Its deadline lies a month ahead: until then any gang could use the cells meanwhile."""
    world = a_full_world()
    world.now += 30 * 24 * HOUR
    world.work()
    assert world.planner.reservations.in_force()
    world.now -= 30 * 24 * HOUR
    world.advance(AFTER)
    world.advance(2)
    (one,) = world.planner.reservations.in_force()
    assert one.promised == one.deadline == 1000 + 4 * HOUR
    assert world.changes[-2].end is ReservationEnd.WRONG_CLOCK


def test_a_gang_whose_class_rose_binds_gangs_of_that_class_too() -> None:
    world = a_world()
    for hour in range(1, 5):
        world.submit(small(f"old{hour}").at(500), runs=hour * HOUR, predicted=hour * HOUR)
    world.submit(LARGE, runs=HOUR)
    world.advance(AFTER)
    change(world, "large", (4, 4, 4, 4), priority=500)
    world.advance(2)
    (one,) = world.planner.reservations.in_force()
    assert one.priority == 500
