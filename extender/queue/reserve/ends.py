"""When the gangs that run are expected to end."""

from collections.abc import Iterable
from math import inf

from extender.queue.ports import RunTimes
from policy.submission import GangKey

_MOST_KNOWN = 100_000
_AT_ONCE = 256
"""Gangs that are asked about in one step: each takes about 50 µs."""
_UNKNOWN_SECONDS = 60.0
"""How long it counts that an end is unknown."""


class ExpectedEnds:
    """The expected end of each gang, kept until it is over."""

    def __init__(self, run_times: RunTimes) -> None:
        self._run_times = run_times
        self._known: dict[GangKey, tuple[float, float]] = {}
        """When gangs are expected to end, and until when that counts."""

    def of(self, gang: GangKey, *, now: float) -> float:
        """Return when a gang is expected to end; infinite if that is unknown.

        A gang that runs longer than expected is asked about again.
        """
        known = self._known.get(gang)
        return self._ask(gang, now=now) if known is None or known[1] <= now else known[0]

    def prepare(self, gangs: Iterable[GangKey], *, now: float) -> bool:
        """Ask about some of these gangs; return whether the ends of all are known now."""
        asked = 0
        for gang in gangs:
            known = self._known.get(gang)
            if known is None or known[1] <= now:
                if asked == _AT_ONCE:
                    return False
                self._ask(gang, now=now)
                asked += 1
        return True

    def _ask(self, gang: GangKey, *, now: float) -> float:
        end = now + self._remaining(gang, now=now)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[gang] = end, end if end < inf else now + _UNKNOWN_SECONDS
        return end

    def _remaining(self, gang: GangKey, *, now: float) -> float:
        known = self._run_times.remaining(gang, now=now)
        times = [time for time in (known.median, known.limit) if time is not None]
        return max(0.0, min(times)) if times else inf

    def in_order(self, gangs: Iterable[GangKey], *, now: float) -> list[tuple[GangKey, float]]:
        """Return gangs by their expected ends, those with unknown ends last."""
        found = [(gang, self.of(gang, now=now)) for gang in gangs]
        return sorted(found, key=lambda one: (one[1], one[0]))
