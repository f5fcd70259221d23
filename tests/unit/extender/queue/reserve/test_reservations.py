"""A large gang among small ones: what is reserved, who may use it meanwhile, and what slips."""

from dataclasses import replace

import pytest

from extender.cells.model import ReasonCode
from extender.queue.forecast.model import RunTime
from extender.queue.reserve.model import ReservationEnd, Slip, SlipCause
from policy.classes import NO_CLASSES
from policy.queues.queues import DEFAULT_QUEUES, PreemptionRules, ReservationRules, RunTimeRules
from tests.support.cells.builders import a_cluster, a_gang
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


def test_the_head_of_a_pool_gets_cells_once_it_has_waited() -> None:
    world = a_full_world()
    world.advance(AFTER - 1)
    assert world.planner.reservations.in_force() == []
    world.advance(1)
    (one,) = world.planner.reservations.in_force()
    assert one.gang == key("large")
    assert sorted(one.nodes) == sorted(world.nodes)
    assert one.first_promised == one.promised == one.deadline == 1000 + 4 * HOUR
    assert one.waits_for == key("old4")


def test_a_stream_of_small_gangs_does_not_keep_a_large_one_waiting() -> None:
    world = a_full_world()
    for number in range(100):
        world.advance(300)
        world.submit(small(f"new{number}", 1), runs=2 * HOUR)
    assert world.started[key("large")] == 1000 + 4 * HOUR


@pytest.mark.parametrize("number", [6, 200])
def test_gangs_that_never_fit_keep_no_other_from_a_reservation(number: int) -> None:
    """Else a user with some of them lets all large gangs of the VC wait for ever."""
    world = a_world()
    for hour in range(1, 5):
        world.submit(small(f"old{hour}"), runs=hour * HOUR, predicted=hour * HOUR)
    for one in range(number):
        world.submit(a_gang(f"ahead{one:03}").times(8, 4), runs=HOUR)
    world.advance(1)
    world.submit(LARGE, runs=HOUR)
    world.advance(AFTER)
    for _ in range(5):
        world.advance(1)
    assert [one.gang for one in world.planner.reservations.in_force()] == [key("large")]


def test_without_reservations_it_would_wait_forever() -> None:
    world = a_full_world(reservation=ReservationRules(per_pool=0))
    for number in range(100):
        world.advance(300)
        world.submit(small(f"new{number}", 1), runs=2 * HOUR)
    assert key("large") not in world.started


def test_a_gang_that_ends_in_time_uses_the_gap() -> None:
    world = a_full_world()
    world.advance(1.5 * HOUR)
    short = world.submit(small("short"), runs=HOUR, limit=HOUR)
    assert short in world.started
    assert world.backfilled == [short]
    long = world.submit(small("long"), runs=9 * HOUR, limit=9 * HOUR)
    unknown = world.submit(small("unknown"), runs=1)
    world.advance(4 * HOUR)
    assert world.started[key("large")] == 1000 + 4 * HOUR
    assert world.started[long] == world.started[unknown] == 1000 + 5 * HOUR


def test_a_prediction_from_few_runs_is_not_enough_to_use_the_gap() -> None:
    world = a_full_world()
    world.advance(1.5 * HOUR)
    few = world.submit(small("few"), runs=1, predicted=1, runs_known=1)
    assert few not in world.started
    assert world.submit(small("many"), runs=1, predicted=1, runs_known=50) in world.started


def test_a_gang_that_is_kept_off_is_told_for_which_gang() -> None:
    world = a_full_world()
    world.advance(1.5 * HOUR)
    world.submit(small("long"), runs=9 * HOUR)
    gang = world.planner._seen[key("long")]
    assert gang.noticed is not None
    assert gang.noticed.code is ReasonCode.RESERVED


def test_shorter_gangs_of_the_same_shape_are_tried_although_a_longer_one_was_refused() -> None:
    world = a_full_world()
    world.advance(1.5 * HOUR)
    world.submit(small("long"), runs=9 * HOUR, limit=9 * HOUR)
    assert world.submit(small("short"), runs=HOUR, limit=HOUR) in world.started


def test_a_gang_uses_the_gap_as_soon_as_its_run_time_is_known() -> None:
    world = a_full_world()
    world.advance(1.5 * HOUR)
    late = world.submit(small("late"), runs=HOUR)
    assert late not in world.started
    world.run_times.of[late] = RunTime(limit=HOUR)
    world.advance(2)
    world.advance(1)
    assert late in world.started


def test_a_reservation_is_kept_though_a_gang_of_a_higher_class_is_ahead() -> None:
    world = a_full_world()
    world.advance(1.5 * HOUR)
    world.submit(small("urgent").at(900), runs=HOUR, may_preempt=False)
    world.advance(3 * HOUR)
    assert world.started[key("large")] == 1000 + 4 * HOUR


def test_a_gang_that_could_preempt_the_large_one_does_not_end_others_instead() -> None:
    world = a_full_world()
    world.advance(1.5 * HOUR)
    assert world.submit(small("urgent").at(900), runs=HOUR) in world.started


def test_a_gang_that_is_preempted_for_the_head_causes_no_slip() -> None:
    """The start was promised for the end of the others: it is not put off until the victim's."""
    world = a_world()
    for number in range(3):
        world.submit(small(f"old{number}"), runs=HOUR, predicted=HOUR)
    guest = world.submit(small("guest").at(-1), runs=9 * HOUR, predicted=9 * HOUR)
    world.submit(LARGE, runs=HOUR)
    world.may_move.add(guest)
    world.advance(AFTER)
    for _ in range(60):
        world.advance(60)
    assert world.evicted  # and it takes a while to end
    (one,) = world.planner.reservations.in_force()
    assert (one.promised, one.slips) == (1000 + HOUR, ())
    world.end(guest)
    world.work()
    assert key("large") in world.started


def test_an_overrun_is_a_slip_with_the_gang_that_caused_it() -> None:
    world = a_world()
    for hour in range(1, 5):
        runs = 6 * HOUR if hour == 4 else hour * HOUR
        world.submit(small(f"old{hour}"), runs=runs, predicted=hour * HOUR)
    world.submit(LARGE, runs=HOUR)
    world.advance(AFTER)
    for _ in range(7 * 60):
        world.advance(60)
    (last,) = [one for one in world.changes if one.end is not None]
    assert last.end is ReservationEnd.STARTED
    assert last.first_promised == 1000 + 4 * HOUR
    assert last.slips
    assert {slip.cause for slip in last.slips} == {SlipCause.OVERRUN}
    assert {slip.gang for slip in last.slips} == {key("old4")}
    assert world.started[key("large")] == 1000 + 6 * HOUR


def test_a_gang_that_runs_on_for_days_is_a_few_slips() -> None:
    world = a_world()
    for number in range(4):
        world.submit(small(f"old{number}"), runs=99 * HOUR, predicted=HOUR)
    world.submit(LARGE, runs=HOUR)
    for _ in range(48 * 60):
        world.advance(60)
    (one,) = world.planner.reservations.in_force()
    assert 1 < len(one.slips) < 25
    assert one.promised is not None
    assert world.now - one.promised < 120, "what is promised is current all the same"
    assert one.slips[0].before == one.first_promised


def test_reservations_are_reviewed_though_the_clock_was_wrong_for_a_moment() -> None:
    world = a_full_world(reservation=ReservationRules(sticky=False))
    world.advance(AFTER)
    world.now += 1000 * 24 * HOUR
    world.work()
    world.now -= 1000 * 24 * HOUR
    world.submit(a_gang("urgent").times(4, 4).at(900), runs=HOUR, may_preempt=False)
    world.advance(2 * AFTER)
    assert [one.gang for one in world.planner.reservations.in_force()] == [key("urgent")]


def test_the_latest_slip_is_the_one_that_grew() -> None:
    """Two gangs that are late take turns: the slip of the first one goes on beside the second's."""
    world = a_full_world()
    world.advance(AFTER)
    (one,) = world.planner.reservations.in_force()
    first = Slip(at=100.0, before=10.0, promised=30.0, cause=SlipCause.OVERRUN, gang=key("old1"))
    second = replace(first, promised=20.0, gang=key("old2"))
    assert replace(one, promised=30.0, slips=(first, second)).latest_slip == first
    assert replace(one, promised=20.0, slips=(first, second)).latest_slip == second


def test_cells_that_are_lost_are_replaced_and_that_is_a_slip() -> None:
    cluster = a_cluster("5 nodes x 4").promising("a", node=4)
    world = TimedWorld(cluster.build())
    for hour in range(1, 5):
        world.submit(small(f"old{hour}"), runs=hour * HOUR, predicted=hour * HOUR)
    world.submit(LARGE, runs=HOUR)
    world.advance(AFTER)
    before = world.planner.reservations.find(key("large"))
    assert before is not None
    world.lose_node(before.nodes[0])
    world.advance(5)
    after = world.planner.reservations.find(key("large"))
    assert after is not None
    assert before.nodes[0] not in after.nodes
    (slip,) = after.slips
    assert slip.cause is SlipCause.CELLS_LOST
    assert slip.nodes == (before.nodes[0],)
    world.advance(5 * HOUR)
    assert key("large") in world.started


def test_without_known_ends_no_gang_uses_the_gap() -> None:
    world = a_world()
    for hour in range(1, 5):
        world.submit(small(f"old{hour}"), runs=hour * HOUR)
    world.submit(LARGE, runs=HOUR)
    world.advance(1.5 * HOUR)
    one = world.planner.reservations.find(key("large"))
    assert one is not None
    assert one.promised is None
    assert world.submit(small("short"), runs=1, limit=1) not in world.started


def test_the_longest_run_bounds_the_deadline() -> None:
    rules = RunTimeRules(longest={"default": 2 * HOUR}, enforce=True)
    world = a_full_world(run_time=rules)
    world.advance(AFTER)
    one = world.planner.reservations.find(key("large"))
    assert one is not None
    assert one.deadline == 1000 + AFTER + 2 * HOUR
    assert one.promised == 1000 + 4 * HOUR


def test_another_vc_is_not_kept_off() -> None:
    cluster = a_cluster("4 nodes x 4").promising("a", node=3).promising("b", node=1)
    world = TimedWorld(cluster.build())
    for hour in range(1, 4):
        world.submit(small(f"old{hour}").in_vc("a"), runs=hour * HOUR, predicted=hour * HOUR)
    world.submit(a_gang("large").in_vc("a").times(3, 4), runs=HOUR)
    world.advance(1.5 * HOUR)
    assert world.planner.reservations.in_force()
    assert world.submit(small("other").in_vc("b"), runs=9 * HOUR) in world.started
    world.advance(2 * HOUR)
    assert world.started[key("large")] == 1000 + 3 * HOUR


def test_after_the_deadline_a_gang_gathers_the_cells_that_become_free() -> None:
    cluster = a_cluster("6 nodes x 4").promising("a", node=6)
    world = TimedWorld(cluster.build())
    for hour, ends in enumerate((1, 99, 99, 4, 5, 99), start=1):
        world.submit(small(f"old{hour}"), runs=ends * HOUR, predicted=hour * HOUR)
    large = world.submit(a_gang("large").times(3, 4), runs=HOUR)
    world.advance(AFTER)
    (one,) = world.planner.reservations.in_force()
    assert one.deadline == 1000 + 3 * HOUR
    later = world.submit(small("later"), runs=99 * HOUR)
    world.advance(9 * HOUR)
    assert world.started[large] == 1000 + 5 * HOUR
    assert world.started[later] == 1000 + 6 * HOUR


def test_a_gang_gets_cells_that_become_free_sooner_than_the_reserved_ones() -> None:
    cluster = a_cluster("6 nodes x 4").promising("a", node=6)
    world = TimedWorld(cluster.build())
    for hour, ends in enumerate((1, 2, 3, 4, 1.5, 6), start=1):
        world.submit(small(f"old{hour}"), runs=ends * HOUR, predicted=hour * HOUR)
    large = world.submit(a_gang("large").times(3, 4), runs=HOUR)
    world.advance(AFTER)
    assert world.planner.reservations.in_force()[0].deadline == 1000 + 3 * HOUR
    later = world.submit(small("later"), runs=99 * HOUR)
    world.advance(1.5 * HOUR)
    (one,) = world.planner.reservations.in_force()
    assert one.promised == one.deadline == 1000 + 2 * HOUR
    assert one.waits_for == key("old2")
    world.advance(9 * HOUR)
    assert world.started[large] == 1000 + 2 * HOUR
    assert world.started[later] == 1000 + 3 * HOUR


def test_a_gang_does_not_wait_for_cells_whose_gang_runs_on_and_on() -> None:
    cluster = a_cluster("3 nodes x 4").promising("a", node=3)
    world = TimedWorld(cluster.build())
    world.submit(small("old1"), runs=HOUR, predicted=HOUR)
    world.submit(small("endless"), runs=99 * HOUR, predicted=2 * HOUR)
    for hour in (3, 4, 5):
        world.submit(small(f"part{hour}", 1), runs=hour * HOUR, predicted=hour * HOUR)
    large = world.submit(a_gang("large").times(2, 4), runs=HOUR)
    world.advance(AFTER)
    (one,) = world.planner.reservations.in_force()
    assert one.deadline == 1000 + 2 * HOUR
    for number in range(6):
        world.submit(small(f"late{number}", 1), runs=3 * HOUR, predicted=3 * HOUR)
    world.run_times.of[key("endless")] = RunTime(median=50 * HOUR, source="stated", runs=9)
    for _ in range(8 * 60):
        world.advance(60)
    assert world.started[large] <= 1000 + 5 * HOUR + 60


def test_opportunistic_gangs_use_the_cells_until_they_are_needed() -> None:
    world = a_full_world()
    world.advance(1.5 * HOUR)
    assert world.submit(small("guest").at(-1), runs=99 * HOUR) in world.started


def test_without_a_minimum_run_they_may_use_them_also_when_gangs_end_late() -> None:
    world = a_world()
    for hour in range(1, 5):
        world.submit(small(f"old{hour}"), runs=HOUR if hour < 4 else 99 * HOUR, predicted=HOUR)
    world.submit(LARGE, runs=HOUR)
    world.advance(1.5 * HOUR)
    (one,) = world.planner.reservations.in_force()
    assert one.deadline < world.now
    guest = world.submit(small("guest").at(-1), runs=99 * HOUR)
    assert guest in world.started


def test_opportunistic_gangs_keep_off_when_too_little_time_is_left() -> None:
    world = a_full_world(preemption=PreemptionRules(minimum_run=HOUR))
    world.advance(3.5 * HOUR)
    assert world.submit(small("guest").at(-1), runs=99 * HOUR) not in world.started
    gang = world.planner._seen[key("guest")]
    assert gang.noticed is not None
    assert gang.noticed.code is ReasonCode.RESERVED, "it has no node selector that could be wrong"
    assert world.submit(small("brief").at(-1), runs=60, limit=HOUR / 4) in world.started


def test_they_use_the_cells_as_soon_as_the_document_has_no_minimum_run() -> None:
    world = a_full_world(preemption=PreemptionRules(minimum_run=HOUR))
    world.advance(3.5 * HOUR)
    guest = world.submit(small("guest").at(-1), runs=99 * HOUR)
    assert guest not in world.started
    order = world.planner.ranking.order
    order.configure(replace(order.queues, preemption=PreemptionRules()), NO_CLASSES)
    world.work()
    assert guest in world.started


@pytest.mark.parametrize("predicted", [None, HOUR])
def test_cells_are_kept_for_an_opportunistic_gang_only_if_ends_are_known(
    predicted: float | None,
) -> None:
    world = a_world()
    for number in range(4):
        world.submit(small(f"old{number}").at(-1), runs=HOUR, predicted=predicted)
    world.submit(LARGE.at(-1), runs=HOUR)
    world.advance(AFTER)
    assert bool(world.planner.reservations.in_force()) is (predicted is not None)


def test_a_reservation_ends_with_its_gang() -> None:
    world = a_full_world()
    world.advance(1.5 * HOUR)
    assert world.submit(small("long"), runs=9 * HOUR) not in world.started
    world.end(key("large"))
    world.work()
    assert world.changes[-1].end is ReservationEnd.GONE
    assert key("long") in world.started


def test_a_reservation_that_is_not_sticky_follows_the_head() -> None:
    world = a_full_world(reservation=ReservationRules(sticky=False))
    world.advance(AFTER)
    world.submit(a_gang("urgent").times(4, 4).at(900), runs=HOUR, may_preempt=False)
    world.advance(2 * AFTER)
    ends = [one.end for one in world.changes if one.end is not None]
    assert ends == [ReservationEnd.OUTRANKED]
    assert [one.gang for one in world.planner.reservations.in_force()] == [key("urgent")]


def test_the_next_leader_keeps_the_reservation() -> None:
    world = a_full_world()
    world.advance(1.5 * HOUR)
    made = world.planner.reservations.in_force()
    world.planner = world.build_planner(DEFAULT_QUEUES)
    world.planner.reservations.restore(made)
    for pod in world.pods.values():
        world.planner.see(pod)
    world.work()
    assert world.planner.reservations.in_force() == made
    urgent = world.submit(small("urgent").at(900), runs=9 * HOUR, may_preempt=False)
    assert urgent not in world.started
    world.advance(3 * HOUR)
    assert world.started[key("large")] == 1000 + 4 * HOUR
