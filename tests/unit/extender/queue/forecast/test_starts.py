"""Expected starts: medians of futures, and intervals from outcomes."""

from dataclasses import replace
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.queue.forecast.copied_gangs import NEVER
from extender.queue.forecast.futures import SampledStart
from extender.queue.forecast.starts import (
    DrawnStart,
    StartCalibration,
    StartOutcome,
    bucket_of,
    draw_start,
)
from policy.submission import GangKey
from policy.wording import moment

_BERT, _GPT = GangKey("lab", "bert"), GangKey("lab", "gpt")


def _outcome(
    number: int, factor: float, predicted: float, told: tuple[float, float] | None = None
) -> StartOutcome:
    """An outcome; each is of an hour of its own."""
    return StartOutcome(
        predicted=predicted,
        spread=0.5,
        actual=predicted * factor,
        at=3600.0 * number,
        coverage=0.8,
        told=told,
    )


def _calibrated(*factors: float, predicted: float = 3600.0) -> StartCalibration:
    calibration = StartCalibration()
    for number, factor in enumerate(factors):
        calibration.learn(_outcome(number, factor, predicted))
    return calibration


def _drawn(seconds: float, *, spread: float = 0.5) -> DrawnStart:
    return DrawnStart(seconds=seconds, spread=spread)


def test_the_median_of_the_futures_and_the_usual_end_count() -> None:
    samples = [SampledStart(60, _BERT), SampledStart(90, _GPT), SampledStart(100, _GPT)]
    drawn = draw_start(samples)
    assert (drawn.seconds, drawn.after) == (90, (_GPT, _BERT))
    assert draw_start([*samples, SampledStart(NEVER, None)]).seconds == 95


def test_a_gang_that_does_not_start_in_most_futures_has_no_start() -> None:
    never = SampledStart(NEVER, None)
    drawn = draw_start([SampledStart(60, _BERT), never, never])
    assert drawn.seconds == NEVER
    assert _calibrated(*[1.0] * 40).expect(_drawn(NEVER), coverage=0.8) is None


def test_below_thirty_outcomes_no_interval_is_told() -> None:
    assert _calibrated(*[1.0] * 29).expect(_drawn(3600), coverage=0.8) is None
    assert _calibrated(*[1.0] * 30).expect(_drawn(3600), coverage=0.8) is not None


def test_the_interval_is_as_wide_as_earlier_errors_were() -> None:
    """Before it is known how often starts are inside, half of what may be outside is left there."""
    factors = [0.5 + number / 100 for number in range(100)]
    start = _calibrated(*factors).expect(_drawn(3600), coverage=0.8)
    assert start is not None
    assert start.low == pytest.approx(3600 * 0.55, rel=0.03)
    assert start.high == pytest.approx(3600 * 1.45, rel=0.03)
    assert start.median == 3600


@pytest.mark.parametrize("seconds", [3600.0, 1e12], ids=["usual", "after the year 9999"])
def test_every_start_that_is_told_has_a_date(seconds: float) -> None:
    """One late start in eight, and futures that are far apart, reach beyond all dates."""
    calibration = StartCalibration()
    for number in range(60):
        late = _outcome(number, 4.0 if number % 8 == 0 else 1.1, seconds)
        calibration.learn(replace(late, spread=0.2))
    start = calibration.expect(_drawn(seconds, spread=3.0), coverage=0.8)
    assert start is not None
    for told in (start.low, start.median, start.high):
        assert moment(1.8e9 + told) < "3000"


def test_the_interval_is_wider_where_futures_are_further_apart() -> None:
    calibration = _calibrated(*[0.5, 2.0] * 50)
    near, far = (calibration.expect(_drawn(3600, spread=one), coverage=0.8) for one in (0.5, 1.0))
    assert near is not None
    assert far is not None
    assert [near.low, near.high] == pytest.approx([1800, 7200])
    assert [far.low, far.high] == pytest.approx([900, 14_400])


def test_the_spread_of_futures_leaves_out_the_earliest_and_the_latest() -> None:
    seconds = [1.0, 100.0, 200.0, 300.0, 400.0, 99_999.0]
    drawn = draw_start([SampledStart(one, None) for one in seconds])
    assert drawn.spread == pytest.approx(log(4) / 2)
    assert draw_start([SampledStart(60, None)] * 8).spread == 0.2
    assert draw_start([SampledStart(60, None), SampledStart(NEVER, None)]).spread == 3.0


def test_of_gangs_that_are_submitted_together_one_outcome_counts() -> None:
    calibration = StartCalibration()
    for number in range(40):
        calibration.learn(replace(_outcome(0, 2.0, 3600.0), at=1000.0 + number))
    assert calibration.outcomes(3600) == 1


def _width(calibration: StartCalibration) -> float:
    start = calibration.expect(_drawn(3600), coverage=0.8)
    assert start is not None
    return start.high / start.low


def test_intervals_grow_while_starts_are_outside_and_shrink_while_they_are_inside() -> None:
    factors = [0.2 + number / 50 for number in range(90)]
    calibration = _calibrated(*factors)
    first = _width(calibration)
    for number in range(10):
        told = (0.0, 1.0) if number % 2 else (1e6, 1e7)
        calibration.learn(_outcome(1000 + number, factors[number * 9], 3600.0, told))
    grown = _width(calibration)
    for number in range(100):
        calibration.learn(_outcome(2000 + number, factors[number % 90], 3600.0, (0.0, 1e6)))
    assert _width(calibration) < first < grown


def test_starts_that_are_early_move_the_early_end_alone() -> None:
    factors = [0.2 + number / 50 for number in range(90)]
    calibration = _calibrated(*factors)
    before = calibration.expect(_drawn(3600), coverage=0.8)
    for number in range(2):
        calibration.learn(_outcome(1000 + number, factors[45], 3600.0, (4000.0, 9000.0)))
    after = calibration.expect(_drawn(3600), coverage=0.8)
    assert before is not None
    assert after is not None
    assert after.low < before.low
    assert after.high <= before.high


def test_the_median_is_moved_by_half_of_what_it_was_off_of_late() -> None:
    start = _calibrated(*[0.25, 1.0] * 100, *[4.0] * 100).expect(_drawn(3600), coverage=0.8)
    assert start is not None
    assert start.median == pytest.approx(7200)
    assert (start.low, start.high) == pytest.approx((900, 14_400))


@given(st.lists(st.floats(-3.0, 3.0), min_size=400, max_size=400), st.integers(0, 3))
def test_what_is_promised_holds_in_the_long_run(errors: list[float], drift: int) -> None:
    calibration = StartCalibration()
    covered = []
    for number, error in enumerate([*errors, *errors]):
        actual = 3600.0 * exp(error / 3 + drift * number / 800)
        start = calibration.expect(_drawn(3600), coverage=0.8)
        inside = None if start is None else start.low <= actual <= start.high
        covered += [] if inside is None else [inside]
        told = None if start is None else (start.low, start.high)
        calibration.learn(_outcome(number, actual / 3600.0, 3600.0, told))
    assert sum(covered) / len(covered) > 0.7


def test_a_few_extreme_outcomes_give_a_time_that_can_be_shown() -> None:
    """The clock was wrong for a while, or users held their gangs for weeks."""
    calibration = _calibrated(*[1.0] * 30, *[1e6] * 10, predicted=60.0)
    expected = calibration.expect(DrawnStart(seconds=60.0, spread=3.0), coverage=0.8)
    assert expected is not None
    assert moment(1.8e9 + expected.high) == "2037-01-12T08:00:00Z"
    late = calibration.expect(DrawnStart(seconds=1e12, spread=3.0), coverage=0.8)
    assert late is None, "nothing is known of such waits"


def test_outcomes_count_for_waits_of_the_same_length() -> None:
    calibration = _calibrated(*[1.0] * 40)
    assert calibration.expect(_drawn(600), coverage=0.8) is None
    assert calibration.outcomes(600) == 0
    assert [bucket_of(seconds) for seconds in (0, 1800, 14_400, NEVER)] == [
        "below 30 min",
        "below 4 h",
        "4 h or more",
        "4 h or more",
    ]


def test_only_the_last_outcomes_count() -> None:
    start = _calibrated(*[9.0] * 400, *[1.0] * 500).expect(_drawn(3600), coverage=0.8)
    assert start is not None
    assert (start.low, start.high, start.outcomes) == (3600, 3600, 500)


def test_the_coverage_is_the_share_of_starts_inside() -> None:
    calibration = StartCalibration()
    assert calibration.coverage is None
    for number in range(4):
        told = (0.0, 3600.0) if number > 0 else (0.0, 1.0)
        calibration.learn(_outcome(0, 1.0, 3600.0, told))
    assert calibration.coverage == 0.75
