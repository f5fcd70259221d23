"""Minimum runs begin with a gang, and are over in time, whatever the document says meanwhile."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from extender.queue.protection.minimum_runs import MinimumRuns
from policy.submission import GangKey

A, B = GangKey("lab", "a"), GangKey("lab", "b")


def test_a_gang_is_protected_from_its_first_start_until_the_minimum_is_over() -> None:
    runs = MinimumRuns()
    runs.start(A, at=100)
    runs.start(A, at=130)  # another member
    assert runs.update(60, now=140) == [A]
    assert runs.minimum_run(A) == 60
    assert runs.next_end == 160
    assert runs.update(60, now=159) == []
    assert runs.update(60, now=160) == [A]
    assert runs.minimum_run(A) == 0
    assert runs.next_end == inf


def test_a_gang_that_has_run_for_long_is_not_protected() -> None:
    runs = MinimumRuns()
    runs.start(A, at=100)
    assert runs.update(60, now=200) == []


def test_without_a_minimum_no_gang_is_protected() -> None:
    runs = MinimumRuns()
    runs.start(A, at=100)
    assert runs.update(0, now=100) == []
    assert runs.next_end == inf


def test_a_gang_that_ended_is_forgotten_and_starts_anew() -> None:
    runs = MinimumRuns()
    runs.start(A, at=100)
    assert runs.update(60, now=100) == [A]
    runs.end(A)
    assert runs.update(60, now=170) == []
    runs.start(A, at=170)
    assert runs.update(60, now=170) == [A]
    assert runs.next_end == 230


def test_another_minimum_counts_from_the_start() -> None:
    runs = MinimumRuns()
    runs.start(A, at=100)
    runs.start(B, at=0)
    assert runs.update(60, now=110) == [A]
    assert runs.update(200, now=110) == [A, B]
    assert (runs.minimum_run(A), runs.minimum_run(B), runs.next_end) == (200, 200, 200)
    assert runs.update(0, now=120) == [A, B]
    assert runs.next_end == inf


EVENTS = st.lists(
    st.tuples(st.sampled_from(["start", "end", "wait"]), st.integers(0, 5), st.integers(0, 40)),
    max_size=40,
)


@given(events=EVENTS, minimums=st.lists(st.sampled_from([0, 10, 30]), min_size=1, max_size=3))
def test_what_is_told_agrees_with_the_starts(
    events: list[tuple[str, int, int]], minimums: list[int]
) -> None:
    runs, now, started, told = MinimumRuns(), 0.0, dict[GangKey, float](), dict[GangKey, int]()
    for index, (event, number, seconds) in enumerate(events):
        gang, minimum = GangKey("lab", str(number)), minimums[index * len(minimums) // len(events)]
        if event == "start":
            at = now - seconds
            started[gang] = min(at, started.get(gang, at))
            runs.start(gang, at=at)
        elif event == "end":
            started.pop(gang, None)
            told.pop(gang, None)
            runs.end(gang)
        else:
            now += seconds
        for changed in runs.update(minimum, now=now):
            assert told.get(changed, 0) != runs.minimum_run(changed)
            told[changed] = runs.minimum_run(changed)
        for key, at in started.items():
            assert told.get(key, 0) == (minimum if at + minimum > now else 0)
        under_way = [at + minimum for at in started.values() if at + minimum > now]
        assert runs.next_end <= min(under_way, default=inf)
        assert runs.next_end > now
