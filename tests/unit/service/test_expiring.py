"""Answers that are remembered for some seconds."""

from service.expiring import ExpiringCache


class _Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def _cache(time: _Time, *, most: int = 2) -> ExpiringCache[str, int]:
    return ExpiringCache(seconds=10, most=most, monotonic=time)


def test_an_answer_is_forgotten_after_its_time() -> None:
    time = _Time()
    cache = _cache(time)
    cache.put("a", 1)
    time.now += 9.9
    assert cache.get("a") == 1
    time.now += 0.1
    assert cache.get("a") is None


def test_a_repeated_answer_lives_from_its_repetition() -> None:
    time = _Time()
    cache = _cache(time)
    cache.put("a", 1)
    time.now += 9
    cache.put("a", 2)
    time.now += 9
    assert cache.get("a") == 2


def test_the_oldest_goes_first_and_the_number_stays_bounded() -> None:
    cache = _cache(_Time())
    for number, key in enumerate("abac"):
        cache.put(key, number)
    assert [cache.get(key) for key in "abc"] == [2, None, 3]
    for number in range(1000):
        cache.put(str(number), number)
    assert len(cache) == 2
