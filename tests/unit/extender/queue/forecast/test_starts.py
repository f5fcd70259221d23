"""Expected starts: medians of futures, and intervals from outcomes."""

import pytest

from extender.queue.forecast.futures import NEVER, SampledStart
from extender.queue.forecast.starts import StartCalibration, bucket_of, draw_start
from policy.submission import GangKey

_BERT, _GPT = GangKey("lab", "bert"), GangKey("lab", "gpt")


def _calibrated(*factors: float, predicted: float = 3600.0) -> StartCalibration:
    calibration = StartCalibration()
    for factor in factors:
        calibration.learn(predicted, predicted * factor)
    return calibration


def test_the_median_of_the_futures_and_the_usual_end_count() -> None:
    samples = [SampledStart(60, _BERT), SampledStart(90, _GPT), SampledStart(100, _GPT)]
    drawn = draw_start(samples)
    assert (drawn.seconds, drawn.after) == (90, (_GPT, _BERT))
    assert draw_start([*samples, SampledStart(NEVER, None)]).seconds == 95


def test_a_gang_that_does_not_start_in_most_futures_has_no_start() -> None:
    never = SampledStart(NEVER, None)
    drawn = draw_start([SampledStart(60, _BERT), never, never])
    assert drawn.seconds == NEVER
    assert _calibrated(*[1.0] * 40).expect(NEVER, coverage=0.8) is None


def test_below_thirty_outcomes_no_interval_is_told() -> None:
    assert _calibrated(*[1.0] * 29).expect(3600, coverage=0.8) is None
    assert _calibrated(*[1.0] * 30).expect(3600, coverage=0.8) is not None


def test_the_interval_is_as_wide_as_earlier_errors_were() -> None:
    factors = [0.5 + number / 100 for number in range(100)]
    start = _calibrated(*factors).expect(3600, coverage=0.8)
    assert start is not None
    assert start.low == pytest.approx(3600 * 0.6, rel=0.03)
    assert start.high == pytest.approx(3600 * 1.4, rel=0.03)
    assert start.median == 3600


def test_outcomes_count_for_waits_of_the_same_length() -> None:
    calibration = _calibrated(*[1.0] * 40)
    assert calibration.expect(600, coverage=0.8) is None
    assert calibration.outcomes(600) == 0
    assert [bucket_of(seconds) for seconds in (0, 1800, 14_400, NEVER)] == [
        "below 30 min",
        "below 4 h",
        "4 h or more",
        "4 h or more",
    ]


def test_only_the_last_outcomes_count() -> None:
    start = _calibrated(*[9.0] * 400, *[1.0] * 300).expect(3600, coverage=0.8)
    assert start is not None
    assert (start.low, start.high, start.outcomes) == (3600, 3600, 300)


def test_the_coverage_is_the_share_of_starts_inside() -> None:
    calibration = StartCalibration()
    assert calibration.coverage is None
    for number in range(4):
        calibration.note_covered(is_covered=number > 0)
    assert calibration.coverage == 0.75
