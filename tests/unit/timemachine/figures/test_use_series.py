"""Use, fragments and starvation over time."""

import pytest

from policy.submission import LeafType
from tests.support.timemachine.worlds import HOUR, a_world, an_arrival
from timemachine.figures.steps import Steps
from timemachine.play import play


def test_number_is_constant_between_its_changes() -> None:
    steps = Steps()
    steps.set(2.0, at=10.0)
    steps.add(3.0, at=20.0)
    assert steps.value == 5.0
    assert steps.integral(0.0, 30.0) == 2.0 * 10.0 + 5.0 * 10.0
    assert steps.integral(15.0, 25.0) == 2.0 * 5.0 + 5.0 * 5.0
    assert list(steps.averages(0.0, 10.0, 4)) == [0.0, 2.0, 5.0, 5.0]


def test_of_several_changes_at_one_moment_the_last_counts() -> None:
    steps = Steps()
    steps.set(2.0, at=10.0)
    steps.set(1.0, at=10.0)
    assert steps.integral(0.0, 20.0) == 10.0


def test_use_is_averaged_in_stretches_by_vc_and_with_what_waits() -> None:
    arrivals = [
        an_arrival("first", 8, 8, runs=HOUR),
        an_arrival("second", 8, runs=HOUR),
        an_arrival("other", 4, vc="b", runs=2 * HOUR),
    ]
    run = play(arrivals, a_world())
    assert (run.begin, run.end, len(run.use)) == (0.0, 2 * HOUR, 240)
    first, last = run.use[0], run.use[-1]
    assert (first.used, first.waiting, first.by_vc) == (20.0, 8.0, {"a": 16.0, "b": 4.0})
    assert (last.used, last.waiting, last.by_vc) == (12.0, 0.0, {"a": 8.0, "b": 4.0})


def test_utilisation_counts_from_the_first_arrival_to_the_last() -> None:
    """16 of 32 leaf cells for an hour of two."""
    arrivals = [an_arrival("first", 8, 8, runs=HOUR), an_arrival("last", 8, at=2 * HOUR)]
    assert play(arrivals, a_world()).utilisation == pytest.approx(0.25)


def test_idle_leaf_cells_of_nodes_in_use_are_fragments() -> None:
    """One node of four is half in use: 4 of 28 idle leaf cells are not on idle nodes."""
    arrivals = [an_arrival("small", 4, runs=3 * HOUR), an_arrival("last", 8, at=2 * HOUR)]
    assert play(arrivals, a_world()).fragmentation == pytest.approx(4 / 28)


def test_whole_cluster_in_use_has_no_fragments() -> None:
    all_of_it = an_arrival("all", 8, 8, 8, 8, asks="oppo", runs=2 * HOUR)
    assert play([all_of_it, an_arrival("last", 8, at=HOUR)], a_world()).fragmentation == 0.0


def test_longest_time_that_one_gang_was_first_of_its_pool() -> None:
    arrivals = [
        an_arrival("holder", 8, 8, runs=5 * HOUR),
        an_arrival("first", 8, 8, at=HOUR, runs=HOUR),
        an_arrival("second", 8, 8, at=HOUR + 1.0, runs=HOUR),
    ]
    assert play(arrivals, a_world()).longest_head_wait == 4 * HOUR


def test_gang_that_is_never_charged_is_first_of_no_pool() -> None:
    world = a_world(quotas="groups: [{name: nlp, over: queue, limits: {leafCells: 4}}]")
    waiting = an_arrival("waiting", 8, groups=["nlp"], leaf_type=LeafType("gpu"))
    assert play([waiting, an_arrival("other")], world).longest_head_wait == 0.0
