"""Numbers, durations, moments and changes in words."""

import math

import pytest

from cli.whatif.html.frame import units
from cli.whatif.html.frame.units import DAY, HOUR, Direction


def _plain(shown: str) -> str:
    return shown.replace(units.NARROW, " ").replace("\u2212", "-").replace("\u2013", "nothing")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (-0.4, "0 s"),
        (59.4, "59 s"),
        (204, "3.4 min"),
        (840, "14 min"),
        (4320, "1.2 h"),
        (47 * HOUR, "47 h"),
        (4.9 * DAY, "4.9 d"),
        (12345 * DAY, "12,345 d"),
        (-7200, "-2 h"),
        (math.inf, "nothing"),
        (math.nan, "nothing"),
    ],
)
def test_durations_have_two_digits_or_so(seconds: float, shown: str) -> None:
    assert _plain(units.duration(seconds)) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (-0.01, "0"), (3.44, "3.4"), (3.04, "3"), (9.97, "10"), (12345.6, "12,346")],
)
def test_figures_have_one_decimal_below_ten(value: float, shown: str) -> None:
    assert units.figure(value) == shown


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (100, 100.5, Direction.SAME),
        (10_000, 10_050, Direction.SAME),
        (100, 90, Direction.LESS),
        (0, 2, Direction.MORE),
        (math.nan, 2, Direction.SAME),
    ],
)
def test_changes_below_a_second_or_a_hundredth_are_none(
    before: float, after: float, expected: Direction
) -> None:
    assert units.direction(before, after) is expected


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (300, 200, "33 % less"),
        (200, 250, "25 % longer"),
        (100, 410, "4.1 times as long"),
        (0, 60, "longer"),
        (0, 0, "less"),
    ],
)
def test_a_change_is_told_relative_to_what_was_before(
    before: float, after: float, shown: str
) -> None:
    assert _plain(units.change(before, after)) == shown


def test_lists_read_like_sentences() -> None:
    assert units.listed([]) == ""
    assert units.listed(["a"]) == "a"
    assert units.listed(["a", "b", "c"]) == "a, b and c"


def test_things_are_counted() -> None:
    assert [units.counted(n, "gang") for n in (0, 1, 2000)] == ["0 gangs", "1 gang", "2,000 gangs"]


def test_moments_are_told_to_the_minute_in_utc() -> None:
    assert units.moment(1_772_366_400.0) == "2026-03-01 12:00"
    assert _plain(units.moment(math.nan)) == "nothing"


@pytest.mark.parametrize("at", [1e18, -1e18])
def test_moments_beyond_the_calendar_do_not_fail(at: float) -> None:
    assert units.moment(at)


def test_marks_of_an_axis_are_times_days_months_or_years() -> None:
    noon, midnight = 1_772_366_400.0, 1_772_323_200.0
    assert units.tick_moment(noon, is_month=False) == "12:00"
    assert _plain(units.tick_moment(midnight, is_month=False)) == "1 Mar"
    assert units.tick_moment(midnight, is_month=True) == "Mar"
    assert units.tick_moment(units.month_at(midnight, later=10)[1], is_month=True) == "2027"
