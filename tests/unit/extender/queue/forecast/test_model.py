"""What a run time says about when a run has ended."""

from extender.queue.forecast.model import NOTHING_KNOWN, RunTime


def test_nothing_known_says_nothing_about_the_end() -> None:
    assert not NOTHING_KNOWN.is_known
    assert NOTHING_KNOWN.ends_within is None


def test_a_limit_alone_says_within_which_time_a_run_ends() -> None:
    assert RunTime(limit=60.0).ends_within == 60.0


def test_the_shorter_of_forecast_and_limit_counts() -> None:
    assert RunTime(median=5.0, high=90.0, limit=60.0).ends_within == 60.0
    assert RunTime(median=5.0, high=30.0, limit=60.0).ends_within == 30.0
