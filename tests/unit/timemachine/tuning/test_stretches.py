"""Days to train on, and days to judge on."""

import pytest

from tests.support.timemachine.worlds import DAY, an_arrival
from timemachine.tuning.stretches import Stretch, arrivals_of, divide, draw


def test_a_long_history_is_trained_on_in_weeks_and_judged_on_later_days() -> None:
    division = divide(100, 145, judge_from=124)
    bounds = [(one.first, one.last) for one in division.training]
    assert bounds == [(100, 105), (106, 111), (112, 117), (118, 123)]
    assert (division.judging.first, division.judging.last) == (124, 145)


def test_weeks_have_seven_days_and_the_last_one_also_the_rest() -> None:
    division = divide(0, 80, judge_from=40)
    assert [len(one.days) for one in division.training] == [7, 7, 7, 7, 12]


def test_no_day_is_both_trained_and_judged_on() -> None:
    division = divide(0, 30, judge_from=15)
    trained = [day for one in division.training for day in one.days]
    assert trained == list(range(15))
    assert list(division.judging.days) == list(range(15, 31))


def test_days_around_a_stretch_are_played_but_no_judging_day_is_played_for_training() -> None:
    division = divide(0, 30, judge_from=15)
    last = division.training[-1]
    assert (last.begin, last.end) == ((last.first - 2) * DAY, 15 * DAY)
    assert (division.training[0].begin, division.training[0].end) == (0.0, 4 * DAY)
    assert (division.judging.begin, division.judging.end) == (13 * DAY, 31 * DAY)


@pytest.mark.parametrize(("last", "judge_from"), [(2, 1), (2, 2), (9, 9)])
def test_two_days_on_each_side_are_needed(last: int, judge_from: int) -> None:
    with pytest.raises(ValueError, match="at least two days"):
        divide(0, last, judge_from=judge_from)


def test_the_least_history_has_two_stretches_to_train_on() -> None:
    assert len(divide(0, 3, judge_from=2).training) == 2


def test_only_gangs_of_the_days_themselves_count() -> None:
    stretch = Stretch(first=2, last=3, begin=1 * DAY, end=5 * DAY)
    arrivals = [an_arrival(str(day), at=day * DAY) for day in (0.5, 1.5, 2.0, 3.9, 4.0, 5.0)]
    found = {
        float(str(one.gang).split("/")[1]): one.is_counted for one in arrivals_of(arrivals, stretch)
    }
    assert found == {1.5: False, 2.0: True, 3.9: True, 4.0: False}


def test_weeks_are_drawn_by_the_seed_and_the_busiest_is_played_first() -> None:
    weeks = divide(0, 80, judge_from=70).training
    arrivals = [an_arrival(str(day), day + 1, at=day * DAY) for day in range(70)]
    drawn = [draw(weeks, arrivals, count=4, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] == sorted(drawn[0], key=lambda week: -week.first)
    assert len(draw(weeks, arrivals, count=40, seed=1)) == len(weeks) - 1, "the first one is idle"
