"""Where values and the marks of axes lie."""

import math
from itertools import pairwise

import pytest

from cli.whatif.html.frame.units import DAY, HOUR, MINUTE
from cli.whatif.html.pictures.scales import balance_scale, count_scale, moment_ticks, wait_scale

_MARCH = 1_772_323_200.0


def test_similar_waits_have_an_even_axis_from_zero() -> None:
    scale = wait_scale([600, 1200, 3000])
    assert scale.knee is None
    assert (scale.low, scale.high) == (0, 3000)
    assert scale.place(1500) == pytest.approx(0.5)


def test_waits_from_seconds_to_days_have_an_axis_by_logarithm() -> None:
    scale = wait_scale([0, 30, 5 * MINUTE, 3 * HOUR, 20 * DAY])
    assert scale.place(0) == 0
    places = [scale.place(value) for value in (0, 30, 300, 3 * HOUR, 20 * DAY)]
    gaps = [after - before for before, after in pairwise(places)]
    assert min(gaps) > 0.06


def test_an_axis_without_zero_begins_below_the_shortest_wait() -> None:
    scale = wait_scale([HOUR, 60 * DAY])
    assert 0 < scale.low < HOUR
    assert 0 < scale.place(HOUR) < 0.1


@pytest.mark.parametrize(
    "waits",
    [
        [],
        [0.0],
        [math.nan, math.inf],
        [0.001],
        [1e12],
        [90.0, 91.0],
        [0.0, 1.0, 1e9],
        [3e9, 1e10, 4.0],
        [-5.0, 100.0],
    ],
    ids=str,
)
def test_any_waits_have_an_axis_with_marks_that_do_not_touch(waits: list[float]) -> None:
    scale = wait_scale(waits)
    places = [scale.place(tick) for tick in scale.ticks]
    assert 1 <= len(places) <= 8
    assert all(0 <= place <= 1 for place in places)
    assert all(b - a >= 0.13 for a, b in pairwise(places))
    assert all(0 <= scale.place(value) <= 1 for value in (*waits, 0.0, 1e15))


@pytest.mark.parametrize("most", [0, 0.3, 1, 9, 10, 1023, 1024, 40_000, 1e9, math.nan, -3])
def test_counts_have_few_round_marks_from_zero(most: float) -> None:
    scale = count_scale(most)
    assert scale.ticks[0] == 0
    assert 2 <= len(scale.ticks) <= 6
    assert scale.high >= scale.ticks[-1]


def test_gains_and_losses_share_an_axis_with_room_on_both_sides() -> None:
    scale = balance_scale(-100 * HOUR, -HOUR)
    assert scale.place(-100 * HOUR) == 0
    assert 0.8 < scale.place(0) < 0.9
    assert tuple(scale.ticks) == (-100 * HOUR, 0)


@pytest.mark.parametrize(
    ("span", "first", "count"),
    [
        (20 * MINUTE, _MARCH, 5),
        (5 * HOUR, _MARCH, 6),
        (DAY, _MARCH, 9),
        (7 * DAY, _MARCH, 8),
        (45 * DAY, _MARCH + DAY, 7),
    ],
)
def test_moments_are_round(span: float, first: float, count: int) -> None:
    found = moment_ticks(_MARCH, _MARCH + span, most=8)
    assert not found.are_months
    assert (found.ticks[0], len(found.ticks)) == (first, count)


@pytest.mark.parametrize("years", [0.5, 1, 3, 10, 40, 500])
def test_long_times_are_marked_by_months_that_begin_then(years: float) -> None:
    found = moment_ticks(_MARCH + 5, _MARCH + years * 365.25 * DAY, most=8)
    assert found.are_months
    assert 3 <= len(found.ticks) <= 9
    assert all(tick % DAY == 0 for tick in found.ticks)
