"""When the gangs that run are expected to end."""

from collections.abc import Iterable
from math import inf

from extender.queue.ports import RunTimes
from policy.submission import GangKey

_MOST_KNOWN = 100_000


class ExpectedEnds:
    """The expected end of each gang, kept until it is over."""

    def __init__(self, run_times: RunTimes) -> None:
        self.run_times = run_times
        self._known: dict[GangKey, float] = {}

    def of(self, gang: GangKey, *, now: float) -> float:
        """Return when a gang is expected to end; infinite if that is unknown.

        A gang that runs longer than expected is asked about again.
        """
        end = self._known.get(gang)
        if end is None or end <= now:
            end = now + self._remaining(gang, now=now)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            if end < inf:
                self._known[gang] = end
        return end

    def _remaining(self, gang: GangKey, *, now: float) -> float:
        known = self.run_times.remaining(gang, now=now)
        times = [time for time in (known.median, known.limit) if time is not None]
        return max(0.0, min(times)) if times else inf

    def in_order(self, gangs: Iterable[GangKey], *, now: float) -> list[tuple[GangKey, float]]:
        """Return gangs by their expected ends, those with unknown ends last."""
        found = [(gang, self.of(gang, now=now)) for gang in gangs]
        return sorted(found, key=lambda one: (one[1], one[0]))
