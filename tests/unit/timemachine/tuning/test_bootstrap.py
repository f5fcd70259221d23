"""How far a figure could be from what was measured."""

from math import inf
from random import Random
from statistics import mean

import pytest

from timemachine.tuning.bootstrap import block_days, interval_of, resample


@pytest.mark.parametrize(("days", "length"), [(1, 1), (7, 2), (10, 2), (40, 4), (70, 6)])
def test_blocks_are_longer_in_a_longer_history(days: int, length: int) -> None:
    assert block_days(days) == length


def test_every_draw_has_as_many_days_as_there_are_in_blocks_of_days_in_a_row() -> None:
    draws = resample(range(40), seed=1, replicates=50)
    assert [sum(times.values()) for times in draws] == [40] * 50
    neighbours = mean(sum((day + 1) % 40 in times for day in times) / len(times) for times in draws)
    assert neighbours > 0.75  # of days drawn one by one it would be 0.63


def test_the_same_seed_draws_the_same_days() -> None:
    first, again, other = (resample(range(20), seed=seed, replicates=5) for seed in (1, 1, 2))
    assert first == again != other


def test_an_interval_leaves_out_the_same_number_of_draws_on_both_sides() -> None:
    found = interval_of(50.0, [float(one) for one in range(101)], confidence=0.9, days=10**9)
    assert found.low == pytest.approx(5.0, rel=1e-3)
    assert found.high == pytest.approx(95.0, rel=1e-3)
    assert not found.is_below_zero
    assert interval_of(-2.0, [-3.0, -1.5], confidence=0.9, days=400).is_below_zero


def test_intervals_of_few_days_are_wider() -> None:
    drawn = [float(one) for one in range(101)]
    widths = [
        interval_of(50.0, drawn, confidence=0.9, days=days).high - 50.0 for days in (4, 16, 100)
    ]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 1.4 * widths[2]


def test_one_day_says_nothing() -> None:
    found = interval_of(50.0, [50.0, 50.0], confidence=0.9, days=1)
    assert (found.low, found.high) == (-inf, inf)


def test_intervals_hold_about_as_often_as_they_say() -> None:
    """Of 200 histories of 40 days, the interval of the mean holds the true mean in most."""
    random = Random(7)
    held = 0
    for seed in range(200):
        values = [random.gauss(5.0, 2.0) for _ in range(40)]
        draws = resample(range(40), seed=seed, replicates=200)
        means = [sum(values[day] * often for day, often in one.items()) / 40 for one in draws]
        found = interval_of(mean(values), means, confidence=0.9, days=40)
        held += found.low <= 5.0 <= found.high
    assert 160 <= held <= 195
