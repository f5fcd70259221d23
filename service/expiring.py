"""Answers that are remembered for some seconds, and never more than so many of them."""

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """Remembers each answer equally long; when it is full the oldest is forgotten."""

    def __init__(self, *, seconds: float, most: int, monotonic: Callable[[], float]) -> None:
        self._seconds = seconds
        self._most = most
        self._monotonic = monotonic
        # In the order of writing, which is the order of expiry.
        self._answers: dict[K, tuple[float, V]] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: K) -> V | None:
        """What was answered, unless that is too long ago."""
        expires, answer = self._answers.get(key, (float("-inf"), None))
        return answer if self._monotonic() < expires else None

    def put(self, key: K, answer: V) -> None:
        """Remember an answer."""
        self._answers.pop(key, None)
        if len(self._answers) >= self._most:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = (self._monotonic() + self._seconds, answer)
