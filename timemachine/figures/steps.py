"""A number that is constant between changes, and its averages over time."""

from bisect import bisect_right
from collections.abc import Iterator


class Steps:
    """The changes of one number, in order of time; before the first it is zero."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._values: list[float] = []

    @property
    def value(self) -> float:
        """What it is now."""
        return self._values[-1] if self._values else 0.0

    def set(self, value: float, *, at: float) -> None:
        """Change it; of several changes at one moment the last counts."""
        if self._times and self._times[-1] == at:
            self._values[-1] = value
        elif value != self.value:
            self._times.append(at)
            self._values.append(value)

    def add(self, more: float, *, at: float) -> None:
        """Change it by so much."""
        self.set(self.value + more, at=at)

    def integral(self, begin: float, end: float) -> float:
        """Return the sum over a time; that of a stretch after the last change counts, too."""
        index = bisect_right(self._times, begin) - 1
        total, at = 0.0, begin
        while at < end:
            value = self._values[index] if index >= 0 else 0.0
            index += 1
            until = min(end, self._times[index]) if index < len(self._times) else end
            total += value * (until - at)
            at = until
        return total

    def averages(self, begin: float, width: float, count: int) -> Iterator[float]:
        """Yield the averages of stretches, one after the other."""
        for place in range(count):
            since = begin + place * width
            yield self.integral(since, since + width) / width
