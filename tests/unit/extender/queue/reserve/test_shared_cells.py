"""Reservations of gangs that compete for the same cells of a VC."""

from dataclasses import replace

from policy.queues.queues import ReservationRules
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.queue.large_gang import AFTER, HOUR, a_full_world, a_world, key, small
from tests.support.queue.orders import one_level
from tests.support.queue.timed_world import TimedWorld

_FIFO = one_level("fifo")


def test_a_guest_on_reserved_cells_is_not_preempted_for_a_gang_that_must_leave_them_alone() -> None:
    """Else small gangs would take the cells of a large one, one after the other."""
    world = TimedWorld(a_cluster("2 nodes x 4").promising("a", node=2).build())
    world.submit(small("old"), runs=4 * HOUR, predicted=4 * HOUR)
    large = world.submit(a_gang("large").times(2, 4), runs=HOUR)
    world.advance(AFTER)
    guest = world.submit(small("guest").at(-1), runs=99 * HOUR)
    assert guest in world.started
    assert world.submit(small("long"), runs=9 * HOUR) not in world.started, "it evicts no gang"
    world.end(guest)
    world.advance(4 * HOUR)
    assert world.started[large] == 1000 + 4 * HOUR


def test_two_reservations_of_one_vc_have_no_cell_in_common() -> None:
    world = a_world(reservation=ReservationRules(per_pool=2))
    for hour in range(1, 5):
        world.submit(small(f"old{hour}"), runs=hour * HOUR, predicted=hour * HOUR)
    for name in ("large", "next"):
        world.submit(a_gang(name).times(2, 4), runs=HOUR)
    world.advance(AFTER)
    world.settle()
    first, second = world.planner.reservations.in_force()
    assert not set(first.nodes) & set(second.nodes)
    assert (first.promised, second.promised) == (1000 + 2 * HOUR, 1000 + 4 * HOUR)
    world.advance(5 * HOUR)
    assert (world.started[first.gang], world.started[second.gang]) == (
        1000 + 2 * HOUR,
        1000 + 3 * HOUR,
    )


def test_cells_that_two_pools_share_are_reserved_for_one_gang() -> None:
    """Two gangs with the same cells would keep each other off while the cells are idle."""
    world = a_full_world()
    other = world.submit(a_gang("other").times(4, 4).typed("gpu"), runs=HOUR)
    world.advance(AFTER)
    world.settle()
    assert [one.gang for one in world.planner.reservations.in_force()] == [key("large")]
    world.advance(6 * HOUR)
    assert world.started[key("large")] == 1000 + 4 * HOUR
    assert world.started[other] == 1000 + 5 * HOUR


def test_a_gang_is_not_passed_for_ever_by_gangs_of_another_pool() -> None:
    world = TimedWorld(a_cluster("2 nodes x 4").promising("a", node=2).build(), queues=_FIFO)
    for number in range(3):
        world.submit(a_gang(f"g{number:02}").times(2, 4), runs=HOUR, predicted=HOUR)
    typed = world.submit(a_gang("typed").times(2, 4).typed("gpu"), runs=HOUR)
    world.advance(1)
    for number in range(3, 30):
        world.submit(a_gang(f"g{number:02}").times(2, 4), runs=HOUR, predicted=HOUR)
        world.advance(HOUR / 3)
    assert world.started[typed] == 1000 + 3 * HOUR


def test_small_gangs_of_another_pool_do_not_take_turns_on_the_cells_of_a_large_one() -> None:
    """Each has a reservation of its own, and none of them leaves the large one enough cells."""
    rules = ReservationRules(per_pool=2, after=60.0)
    queues = replace(_FIFO, reservation=rules)
    world = TimedWorld(a_cluster("2 nodes x 4").promising("a", node=2).build(), queues=queues)
    for number in range(4):
        world.submit(small(f"g{number:02}"), runs=(1 + number % 2 / 2) * HOUR, predicted=HOUR)
    typed = world.submit(a_gang("typed").times(2, 4).typed("gpu"), runs=HOUR)
    for number in range(4, 40):
        world.submit(small(f"g{number:02}"), runs=HOUR, predicted=HOUR)
        world.advance(HOUR / 4)
    assert world.started[typed] <= 1000 + 5 * HOUR


def test_a_gang_that_waits_for_its_promise_beside_idle_cells_keeps_its_reservation() -> None:
    """Its nodes are idle long before another node of its VC is: until then the VC has no more."""
    cluster = a_cluster("3 nodes x 4").promising("a", node=2).promising("b", node=1)
    world = TimedWorld(cluster.build())
    world.submit(small("other").in_vc("b"), runs=100, limit=100)  # on n0
    world.submit(small("brief", 1), runs=HOUR, limit=HOUR)  # on n1
    world.submit(small("long"), runs=4 * HOUR, limit=4 * HOUR)  # on n2
    world.advance(100)
    large = world.submit(a_gang("large").times(2, 4), runs=HOUR, limit=HOUR)
    world.advance(AFTER)
    for _ in range(3 * 60):
        world.advance(60)
        world.submit(small(f"late{world.now}", 3), runs=4 * HOUR, limit=4 * HOUR)
    world.advance(HOUR)
    assert world.started[large] == 1000 + 4 * HOUR
