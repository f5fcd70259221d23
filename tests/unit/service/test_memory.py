"""Maps that hold so many entries, for so long."""

import time

import pytest

from service.memory import BoundedMap, ExpiringMap


class _Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Time:
    return _Time()


@pytest.fixture
def expiring(clock: _Time) -> ExpiringMap[str, int]:
    return ExpiringMap(2, seconds=10, monotonic=clock)


def test_the_entry_written_longest_ago_goes_first() -> None:
    found: BoundedMap[str, int] = BoundedMap(2)
    for number, key in enumerate("abac"):
        found[key] = number
    assert dict(found) == {"a": 2, "c": 3}


def test_reading_an_entry_does_not_keep_it() -> None:
    found: BoundedMap[str, int] = BoundedMap(2)
    for key in "ab":
        found[key] = 0
    assert found.get("a") == 0
    found["c"] = 0
    assert list(found) == ["b", "c"]


def test_a_map_is_full_when_a_new_entry_drops_another() -> None:
    found: BoundedMap[str, int] = BoundedMap(2)
    seen = []
    for key in "abc":
        seen.append(found.is_full)
        found[key] = 0
    assert seen == [False, False, True]
    del found["c"]
    assert not found.is_full


def test_writing_to_a_full_map_takes_no_longer_the_larger_it_is() -> None:
    """As it would if the first of many deleted entries had to be found each time."""
    found: BoundedMap[int, None] = BoundedMap(100_000)
    began = time.perf_counter()
    for number in range(300_000):
        found[number] = None
    assert time.perf_counter() - began < 10
    assert len(found) == 100_000


def test_an_entry_expires(expiring: ExpiringMap[str, int], clock: _Time) -> None:
    expiring["a"] = 1
    clock.now += 9.9
    assert (expiring.get("a"), "a" in expiring, list(expiring.values())) == (1, True, [1])
    clock.now += 0.1
    assert (expiring.get("a"), "a" in expiring, list(expiring.values())) == (None, False, [])
    assert len(expiring) == 0


def test_an_entry_expires_counted_from_when_it_was_written_last(
    expiring: ExpiringMap[str, int], clock: _Time
) -> None:
    expiring["a"] = 1
    clock.now += 9
    expiring["a"] = 2
    clock.now += 9
    assert expiring.get("a") == 2


def test_no_more_entries_are_kept_than_may_be(expiring: ExpiringMap[str, int]) -> None:
    for number, key in enumerate("abac"):
        expiring[key] = number
    assert [expiring.get(key) for key in "abc"] == [2, None, 3]
    for number in range(1000):
        expiring[str(number)] = number
    assert len(expiring) == 2


def test_what_is_forgotten_is_gone(expiring: ExpiringMap[str, int]) -> None:
    expiring["a"] = 1
    expiring.pop("a")
    expiring.pop("never there")
    assert expiring.get("a") is None
