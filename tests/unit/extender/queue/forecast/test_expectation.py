"""What is expected of one gang."""

import pytest

from extender.queue.forecast.expectation import expect
from extender.queue.forecast.keys import RunKeys
from extender.queue.forecast.run_times import Forecast, RunTimeBook

_ALICE = RunKeys(user="alice", name="bert-#", vc="lab", leaf_cells=8)


def _forecast(runs: int, keys: RunKeys = _ALICE) -> Forecast | None:
    book = RunTimeBook()
    for number in range(runs):
        book.begin(f"run-{number}", _ALICE, at=1000.0 * number)
        book.end(f"run-{number}", at=1000.0 * number + 600)
    return book.forecast(keys, now=1e6)


def test_without_history_and_estimate_nothing_is_expected() -> None:
    time = expect(None, estimate=None, longest=None).run_time(elapsed=0, quantile=0.9)
    assert (time.median, time.ends_within, time.source) == (None, None, "nothing is known")


def test_a_limit_bounds_what_nothing_else_is_known_about() -> None:
    time = expect(None, estimate=None, longest=None).run_time(elapsed=0, quantile=0.9, limit=60)
    assert (time.median, time.ends_within) == (None, 60)


def test_the_longest_run_of_the_class_is_assumed() -> None:
    expected = expect(None, estimate=None, longest=3600)
    assert expected.run_time(elapsed=600, quantile=0.9).ends_within == 3000
    assert expected.draw(elapsed=600)(0.5, 0) == 3000


def test_a_run_that_is_longer_than_the_assumed_longest_is_not_expected_to_end_at_once() -> None:
    """Else each reservation behind it is put off every half minute, and told so."""
    known = expect(_forecast(6), estimate=None, longest=900)
    time = known.run_time(elapsed=1200, quantile=0.9)
    assert time.median is not None
    assert time.median > 30
    unknown = expect(None, estimate=None, longest=900)
    assert unknown.run_time(elapsed=1200, quantile=0.9).ends_within is None
    assert unknown.draw(elapsed=1200)(0.5, 0) is None


def test_own_history_counts_before_the_estimate() -> None:
    time = expect(_forecast(6), estimate=7200, longest=None).run_time(elapsed=0, quantile=0.9)
    assert time.median == pytest.approx(600, rel=0.05)
    assert (time.source, time.runs) == ("the last 6 runs of the same user, name, image and size", 6)


def test_the_estimate_counts_before_what_others_ran() -> None:
    bob = RunKeys(user="bob", name="x", vc="lab", leaf_cells=8)
    time = expect(_forecast(6, bob), estimate=7200, longest=None).run_time(elapsed=0, quantile=0.9)
    assert time.median == pytest.approx(7200, rel=0.05)
    assert time.high is not None
    assert time.high > 7200
    assert time.source == "its owner's estimate"


def test_no_run_is_expected_beyond_its_limit() -> None:
    expected = expect(None, estimate=7200, longest=None)
    time = expected.run_time(elapsed=0, quantile=0.9, limit=3600)
    assert (time.median, time.high) == (3600, 3600)
    assert expected.draw(elapsed=0, limit=3600)(0.99, 0) == 3600


def test_a_forecast_without_runs_of_the_user_says_of_which_runs_it_is() -> None:
    other = _forecast(1, RunKeys(user="bob", vc="else"))
    time = expect(other, estimate=None, longest=None).run_time(elapsed=0, quantile=0.9)
    assert time.source == "the last 1 run of all gangs"
