"""Forecasts from ended runs."""

from math import exp, log

import pytest

from extender.queue.forecast.calibration import Curve, quantile_of
from extender.queue.forecast.keys import KeyKind, RunKeys, name_pattern, size_class
from extender.queue.forecast.run_times import Forecast, RunTimeBook

_ALICE = RunKeys(user="alice", name="bert-#", image="img", vc="lab", leaf_cells=8)


def _run(book: RunTimeBook, name: str, keys: RunKeys, *, at: float, seconds: float) -> None:
    book.begin(name, keys, at=at)
    book.end(name, at=at + seconds)


def _filled(*seconds: float, keys: RunKeys = _ALICE) -> RunTimeBook:
    book = RunTimeBook()
    for number, one in enumerate(seconds):
        _run(book, f"old-{number}", keys, at=1000.0 * number, seconds=one)
    return book


def _forecast(book: RunTimeBook, keys: RunKeys = _ALICE, *, now: float = 1e6) -> Forecast:
    forecast = book.forecast(keys, now=now)
    assert forecast is not None
    return forecast


def test_without_ended_runs_nothing_is_forecast() -> None:
    assert RunTimeBook().forecast(_ALICE, now=0.0) is None


def test_the_median_of_runs_with_the_same_key_is_forecast() -> None:
    forecast = _forecast(_filled(100, 200, 300, 400, 500))
    assert forecast.seconds == pytest.approx(300)
    assert (forecast.kind, forecast.runs) == (KeyKind.NAME, 5)


def test_few_runs_of_a_key_are_mixed_with_those_of_the_next_one() -> None:
    other = RunKeys(user="alice", name="gpt-#", image="img", vc="lab", leaf_cells=8)
    book = _filled(*[100.0] * 9, keys=other)
    _run(book, "own", _ALICE, at=50_000.0, seconds=10_000.0)
    forecast = _forecast(book)
    weight = 1 / (1 + 5)
    assert forecast.kind is KeyKind.NAME
    assert log(forecast.seconds) == pytest.approx(weight * log(10_000) + (1 - weight) * log(100))


def test_a_run_of_an_unknown_user_is_compared_within_its_vc_and_size() -> None:
    keys = RunKeys(user="bob", name="x", vc="lab", leaf_cells=7)
    assert _forecast(_filled(*[60.0] * 6), keys).kind is KeyKind.VC_SIZE
    assert _forecast(_filled(*[60.0] * 6), RunKeys(vc="other")).kind is KeyKind.ALL


def test_only_the_last_fifty_runs_count() -> None:
    assert _forecast(_filled(*[10.0] * 40, *[1000.0] * 50)).seconds == pytest.approx(1000)


def test_runs_that_go_on_make_a_forecast_longer() -> None:
    book = _filled(100, 100, 100, 100, 5000)
    for number in range(5):
        book.begin(f"going-{number}", _ALICE, at=3500.0 + number)
    assert _forecast(book, now=3600.0).seconds == pytest.approx(100)
    assert _forecast(book, now=8000.0).seconds == pytest.approx(5000)


def test_a_run_that_was_cut_short_is_no_short_run() -> None:
    book = _filled(*[1000.0] * 5)
    for number in range(4):
        book.begin(f"cut-{number}", _ALICE, at=1e5)
        book.end(f"cut-{number}", at=1e5 + 10, is_whole=False)
    assert _forecast(book).seconds == pytest.approx(1000)
    assert book.learned == 5


def test_the_method_that_was_nearer_counts() -> None:
    book = _filled(*[10.0] * 40)
    for number in range(20):
        at = 100_000.0 + 1000.0 * number
        _run(book, f"new-{number}", _ALICE, at=at, seconds=900.0)
    forecast = _forecast(book)
    assert forecast.usual != forecast.recent
    assert forecast.curve.center == forecast.recent


def test_repeated_and_unknown_reports_change_nothing() -> None:
    book = _filled(100, 200, 300, 400, 500)
    before = _forecast(book)
    book.end("unknown", at=1e6)
    book.end("old-0", at=1e6)
    book.begin("going", _ALICE, at=1e6)
    book.begin("going", _ALICE, at=2e6)
    book.forget("going")
    book.forget("going")
    assert _forecast(book) == before


def test_the_same_runs_give_the_same_forecast() -> None:
    seconds = [(number * 7919) % 997 + 1.0 for number in range(300)]
    one, other = (_forecast(_filled(*seconds)) for _ in range(2))
    assert one == other


def test_keys_that_were_not_used_for_longest_are_forgotten() -> None:
    book = RunTimeBook(most_keys=10)
    for number in range(50):
        keys = RunKeys(user=f"user-{number}", vc="lab")
        _run(book, f"run-{number}", keys, at=1000.0 * number, seconds=60.0)
    assert _forecast(book, RunKeys(user="user-0", vc="lab")).kind is KeyKind.VC_SIZE
    assert _forecast(book, RunKeys(user="user-49", vc="lab")).kind is KeyKind.USER


def test_intervals_are_as_wide_as_earlier_errors_were() -> None:
    book = RunTimeBook()
    seconds = [exp((number * 7919 % 1000) / 150) * 10 for number in range(3000)]
    covered = []
    for number, one in enumerate(seconds):
        at = 20_000.0 * number
        forecast = book.begin(f"run-{number}", _ALICE, at=at)
        book.end(f"run-{number}", at=at + one)
        if number > 500 and forecast is not None:
            low, high = forecast.curve.quantile(0.1), forecast.curve.quantile(0.9)
            covered.append(low <= one <= high)
    assert 0.76 < sum(covered) / len(covered) < 0.84


def test_what_is_left_of_a_run_follows_from_what_it_has_run() -> None:
    curve = Curve(log(100), 1.0, [log(share) for share in (0.5, 0.8, 1.0, 2.0, 4.0)])
    assert curve.left(0.0, 0.5) == pytest.approx(100)
    assert curve.left(150.0, 0.5) == pytest.approx(250)
    assert curve.left(1000.0, 0.5) == pytest.approx(1000)


def test_a_quantile_of_few_scores_is_the_largest() -> None:
    assert quantile_of([1.0, 2.0, 3.0], 0.9) == 3.0
    with pytest.raises(ValueError, match="no scores"):
        quantile_of([], 0.5)


def test_names_of_repeated_runs_have_one_pattern() -> None:
    assert name_pattern("bert-17") == name_pattern("bert-18") == "bert-#"
    assert name_pattern("bert-x7k2q") == name_pattern("bert-m4pzd") == "bert"
    assert name_pattern("bert-large") == "bert-large"


def test_sizes_are_classed_by_powers_of_two() -> None:
    assert [size_class(cells) for cells in (0, 1, 2, 3, 8, 9, 100)] == [1, 1, 2, 4, 8, 16, 32]


def test_a_forecast_that_is_kept_changes_with_the_time_as_a_new_one_would() -> None:
    """Runs that go on pass the run times of ended ones; no run begins or ends meanwhile."""
    books = [_filled(100, 200, 300, 4000, 5000) for _ in range(2)]
    for book in books:
        for number in range(6):
            book.begin(f"going-{number}", _ALICE, at=5000.0 + 7 * number)
    found = []
    for now in range(5050, 12_000, 50):
        forecast = _forecast(books[0], now=float(now))
        found.append(forecast.seconds)
        books[1].begin("other", RunKeys(vc="else"), at=float(now))
        books[1].forget("other")
        assert forecast == _forecast(books[1], now=float(now))
    assert len(set(found)) > 3


def test_questions_about_many_keys_do_not_fill_the_memory() -> None:
    book = RunTimeBook(most_keys=10)
    for number in range(100):
        book.forecast(RunKeys(user=f"user-{number}"), now=0.0)
    assert len(book._kept) <= 10
