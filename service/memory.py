"""Bounded memories: maps that hold no more than so many entries, and if wanted for so long.

An entry counts from when it was written last. The one that was written longest ago goes first.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedMap(OrderedDict[K, V]):
    """A dict of at most `most` entries, the one written longest ago first."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    @property
    def is_full(self) -> bool:
        """Whether the next new entry takes the place of the oldest."""
        return len(self) >= self._most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class ExpiringMap(Generic[K, V]):
    """A bounded map that drops each entry some seconds after it was written."""

    def __init__(self, most: int, *, seconds: float, monotonic: Callable[[], float]) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._entries: BoundedMap[K, tuple[float, V]] = BoundedMap(most)

    def __len__(self) -> int:
        return len(self._current())

    def __contains__(self, key: K) -> bool:
        return key in self._current()

    def get(self, key: K) -> V | None:
        """Return the value, None if there is none any more."""
        entry = self._current().get(key)
        return None if entry is None else entry[1]

    def values(self) -> Iterable[V]:
        """The values that have not expired, the one written longest ago first."""
        return (value for _, value in self._current().values())

    def __setitem__(self, key: K, value: V) -> None:
        self._entries[key] = (self._monotonic() + self._seconds, value)

    def pop(self, key: K) -> None:
        """Forget an entry, if there is one."""
        self._entries.pop(key, None)

    def _current(self) -> BoundedMap[K, tuple[float, V]]:
        """Drop what has expired: the order of writing is the order of expiry."""
        now, entries = self._monotonic(), self._entries
        while entries and next(iter(entries.values()))[0] <= now:
            entries.popitem(last=False)
        return entries
