"""Which numbers of nodes are tried, and which one is the answer."""

from collections.abc import Callable

import pytest

from timemachine.capacity import (
    CapacityStep,
    Goal,
    Measure,
    find_enough,
    next_numbers,
    step_of,
)
from timemachine.comparison import Grouping, Side, Waits


def _waits(p95: float, *, mean: float = 1.0) -> Waits:
    return Waits(gangs=10, mean=mean, median=1.0, p95=p95, longest=2 * p95)


def _side(lab: float) -> Side:
    return Side(
        title="after",
        leaf_cells=8,
        all=_waits(7.0, mean=3.0),
        by={Grouping.VC: {"lab": _waits(lab)}},
        use=(),
        utilisation=0.5,
        fragmentation=0.0,
        refused=0,
        lowered=0,
        preemptions=0,
        longest_head_wait=0.0,
    )


def _lab(seconds: float) -> Goal:
    return Goal(measure=Measure.P95, seconds=seconds, grouping=Grouping.VC, name="lab")


def _search(wait: Callable[[int], float], *, least: int = 0, most: int = 64) -> list[CapacityStep]:
    steps: list[CapacityStep] = []
    while numbers := next_numbers(steps, least=least, most=most):
        steps += [step_of(_lab(100.0), _side(wait(number)), nodes=number) for number in numbers]
        assert len(steps) < 30
    return steps


@pytest.mark.parametrize("answer", [0, 1, 2, 15, 16, 17, 31, 63, 64])
def test_the_smallest_number_is_found_in_few_plays(answer: int) -> None:
    steps = _search(lambda nodes: 50.0 if nodes >= answer else 500.0)
    assert find_enough(steps) == answer
    assert len({step.nodes for step in steps}) == len(steps) <= 5 + 6


def test_the_range_is_divided_first() -> None:
    assert next_numbers([], least=0, most=64) == [0, 16, 32, 48, 64]
    assert next_numbers([], least=0, most=2) == [0, 1, 2]


def test_there_is_no_answer_if_the_most_nodes_are_too_few() -> None:
    steps = _search(lambda _: 500.0)
    assert find_enough(steps) is None
    assert [step.nodes for step in steps] == [0, 16, 32, 48, 64]


def test_a_number_below_one_that_misses_the_goal_is_not_enough() -> None:
    steps = _search(lambda nodes: 50.0 if nodes in (16, 64) else 500.0)
    assert find_enough(steps) == 64


def test_a_goal_reads_the_figures_of_its_row() -> None:
    step = step_of(_lab(2.0), _side(2.0), nodes=4)
    assert (step.seconds, step.is_met, step.utilisation) == (2.0, True, 0.5)
    everyone = Goal(measure=Measure.MEAN, seconds=2.0)
    step = step_of(everyone, _side(2.0), nodes=4)
    assert (step.seconds, step.is_met) == (3.0, False)


def test_gangs_that_do_not_exist_wait_for_nothing() -> None:
    goal = Goal(measure=Measure.P95, seconds=2.0, grouping=Grouping.VC, name="none")
    step = step_of(goal, _side(9.0), nodes=0)
    assert (step.waits.gangs, step.is_met) == (0, True)
