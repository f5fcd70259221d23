"""Run times that sampled futures draw."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from extender.queue.forecast.draws import Draws, PastTimes, share_of
from extender.queue.forecast.expectation import expect
from extender.queue.forecast.keys import RunKeys
from extender.queue.forecast.run_times import RunTimeBook

_OWN = (60.0, 60.0, 120.0, 600.0, 3600.0)
_ALL = (30.0, 60.0, 600.0, 7200.0, 90_000.0)


def _book(*seconds: float, keys: RunKeys) -> RunTimeBook:
    book = RunTimeBook()
    for number, one in enumerate(seconds):
        book.begin(f"run-{number}", keys, at=1e5 * number)
        book.end(f"run-{number}", at=1e5 * number + one)
    return book


def _draws(*levels: Sequence[float]) -> Draws:
    return Draws(tuple(PastTimes(level, seed=7) for level in levels))


def test_a_drawn_run_time_is_one_that_a_run_of_the_same_key_had() -> None:
    draws = _draws(_OWN, _ALL)
    assert {draws.left(0.0, share / 100, 0) for share in range(100)} == set(_OWN)


def test_a_run_that_goes_on_is_compared_with_those_that_ran_longer() -> None:
    draws = _draws(_OWN, _ALL)
    assert {draws.left(100.0, share / 100, 0) for share in range(100)} == {20.0, 500.0, 3500.0}


def test_a_run_that_is_longer_than_all_of_its_key_is_compared_with_more_general_ones() -> None:
    assert _draws(_OWN, _ALL).left(5000.0, 0.4, 0) == 2200.0


def test_a_run_that_is_longer_than_all_is_expected_to_run_as_long_again() -> None:
    assert _draws(_OWN, _ALL).left(100_000.0, 0.5, 0) == pytest.approx(100_000.0)


def test_few_runs_of_a_key_are_drawn_less_often_than_those_of_more_general_keys() -> None:
    draws = _draws((5.0,), _ALL)
    drawn = [draws.left(0.0, share / 600, 0) for share in range(600)]
    assert drawn.count(5.0) == 100
    assert set(drawn) == {5.0, *_ALL}


def test_where_all_keys_have_few_runs_these_are_drawn() -> None:
    draws = _draws((5.0,), (7.0, 9.0))
    assert {draws.left(0.0, share / 100, 0) for share in range(100)} == {5.0, 7.0, 9.0}


def test_futures_draw_from_the_history_of_the_gang_and_keep_to_its_limit() -> None:
    keys = RunKeys(vc="lab", leaf_cells=8)
    forecast = _book(*_OWN, keys=keys).forecast(keys, now=1e6)
    expected = expect(forecast, estimate=None, longest=None)
    drawn = {expected.draw(elapsed=0.0, limit=300.0)(share_of(place, 0), 0) for place in range(99)}
    assert sorted(round(one or 0.0, 6) for one in drawn) == [60.0, 120.0, 300.0]


def test_what_futures_draw_stays_when_further_runs_end() -> None:
    keys = RunKeys(vc="lab", leaf_cells=8)
    book = _book(*_OWN, keys=keys)
    draw = expect(book.forecast(keys, now=1e6), estimate=None, longest=None).draw(elapsed=0.0)
    book.begin("late", keys, at=1e6)
    book.end("late", at=2e6)
    assert max(draw(share / 100, 0) or 0.0 for share in range(100)) < 4000


def test_each_future_draws_from_consecutive_runs() -> None:
    times = PastTimes([float(number) for number in range(50)], seed=7)
    blocks = [times.block(sample) for sample in range(8)]
    assert len({tuple(block) for block in blocks}) > 4, "futures differ"
    for block in blocks:
        steps = {(after - before) % 50 for before, after in pairwise(block)}
        assert len(block) == 10
        assert steps <= {1.0, 41.0}, "the last run is followed by the first one"
    other = PastTimes([float(number) for number in range(50)], seed=8)
    assert [other.block(sample) for sample in range(8)] != blocks


def test_a_run_that_is_longer_than_those_of_its_block_is_compared_with_all_of_its_key() -> None:
    times = [60.0] * 40 + [7200.0]
    drawn = {_draws(times).left(100.0, 0.5, sample) for sample in range(8)}
    assert drawn == {7100.0}
