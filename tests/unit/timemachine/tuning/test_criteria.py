"""Objectives and constraints."""

import pytest

from tests.support.timemachine.tuned_days import a_day, days_of
from timemachine.tuning.criteria import Criteria, Objective, noise_of
from timemachine.tuning.figures import add_up

_MEAN = Criteria(objectives=(Objective.MEAN,))
_HOUR = 3600.0


def test_objectives_are_the_mean_the_p95_of_large_gangs_and_the_vc_that_waits_longest() -> None:
    totals = add_up(
        [a_day(0, {"a": [10.0] * 30, "b": [40.0] * 30, "few": [900.0]}, large=[5.0, 700.0])]
    )
    assert Objective.MEAN.of(totals) == pytest.approx((300 + 1200 + 900) / 61)
    assert Objective.LARGE.of(totals) == 700.0
    assert Objective.FAIRNESS.of(totals) == 40.0, "a VC with one gang says too little"
    assert Objective.FAIRNESS.of(add_up([])) == 0.0


def test_a_vc_may_wait_a_little_longer_by_part_and_by_a_minute() -> None:
    before = add_up(days_of(_HOUR))
    for seconds, worse in ((1.05 * _HOUR + 59, {}), (1.05 * _HOUR + 61, {"a": pytest.approx(1.0)})):
        assert _MEAN.worse_vcs(before, add_up(days_of(seconds))) == worse


def test_a_vc_with_few_gangs_is_not_judged() -> None:
    before, after = add_up(days_of(0.0, gangs=19)), add_up(days_of(9e5, gangs=19))
    assert _MEAN.worse_vcs(before, after) == {}


def test_whether_vcs_are_worse_off_can_be_left_out() -> None:
    free = Criteria(vc_tolerance=None)
    assert free.worse_vcs(add_up(days_of(0.0)), add_up(days_of(9e5))) == {}


def test_objectives_can_have_limits() -> None:
    criteria = Criteria(limits={Objective.LARGE: 0.1})
    before = add_up([a_day(0, {}, large=[100.0])])
    within, beyond = (add_up([a_day(0, {}, large=[wait])]) for wait in (110.0, 130.0))
    assert criteria.broken_limits(before, within) == {}
    assert criteria.broken_limits(before, beyond) == {Objective.LARGE: pytest.approx(20.0)}


def test_what_keeps_the_constraints_is_ahead_of_what_does_not() -> None:
    before = [a_day(0, {"a": [100.0] * 30, "b": [100.0] * 30})]
    worse_for_b = [a_day(0, {"a": [0.0] * 30, "b": [180.0] * 30})]
    much_worse_for_b = [a_day(0, {"a": [0.0] * 30, "b": [190.0] * 30})]
    little_better = [a_day(0, {"a": [99.0] * 30, "b": [99.0] * 30})]
    better = [a_day(0, {"a": [90.0] * 30, "b": [99.0] * 30})]
    after = [much_worse_for_b, worse_for_b, little_better, better]
    assert _MEAN.order(before, after) == [3, 2, 1, 0]


def test_of_those_that_no_other_beats_the_first_objective_decides() -> None:
    def one(wait: float, large: float) -> list[object]:
        return [a_day(0, {"a": [wait] * 30}, large=[large])]

    criteria = Criteria(objectives=(Objective.LARGE, Objective.MEAN))
    after = [one(1.0, 9.0), one(9.0, 1.0), one(9.0, 9.0)]
    assert criteria.order(one(9.0, 9.0), after) == [1, 0, 2]  # type: ignore[arg-type]  # days


def test_what_can_be_noise_in_few_days_is_tolerated() -> None:
    """One day in seven was worse: that says little about the VC."""
    before = days_of(*[_HOUR] * 7)
    once = days_of(*[_HOUR] * 6, 2 * _HOUR)
    always = days_of(*[1.2 * _HOUR] * 7)
    assert noise_of(before, always) == {"a": 0.0}
    assert noise_of(before, once)["a"] == pytest.approx(_HOUR / 7, rel=0.01)
    assert _MEAN.order(before, [always, once]) == [1, 0]
