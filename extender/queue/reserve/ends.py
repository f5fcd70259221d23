"""When the gangs that run are expected to end, and by when others must end."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from extender.queue.ports import RunTimes
from policy.queues.queues import DEFAULT_LONGEST
from policy.submission import GangKey

_MOST_KNOWN = 100_000
_AT_ONCE = 256
"""Gangs that are asked about in one step: each takes about 50 µs."""
_UNKNOWN_SECONDS = 60.0
"""How long it counts that an end is unknown."""


def deadline_of(shadow: float, *, longest: Mapping[str, float], now: float) -> float:
    """Return the time before which other gangs must end on cells that are reserved now.

    Where no end is known, no gang begins there any more. `longest` are the longest runs by class.
    """
    bound = max(longest.values()) if DEFAULT_LONGEST in longest else inf
    deadline = min(shadow, now + bound)
    return deadline if deadline < inf else now


@dataclass(frozen=True, slots=True)
class _Known:
    """An expected end, and from when until when it counts."""

    end: float
    since: float
    until: float

    def counts_at(self, now: float) -> bool:
        """Tell whether it counts now; not if the clock has gone back since it was asked for."""
        return self.since <= now < self.until


class ExpectedEnds:
    """The expected end of each gang, kept until it is over."""

    def __init__(self, run_times: RunTimes) -> None:
        self._run_times = run_times
        self._known: dict[GangKey, _Known] = {}

    def of(self, gang: GangKey, *, now: float) -> float:
        """Return when a gang is expected to end; infinite if that is unknown.

        A gang that runs longer than expected is asked about again.
        """
        known = self._known.get(gang)
        is_current = known is not None and known.counts_at(now)
        return known.end if known is not None and is_current else self._ask(gang, now=now)

    def prepare(self, gangs: Iterable[GangKey], *, now: float) -> bool:
        """Ask about some of these gangs; return whether the ends of all are known now."""
        asked = 0
        for gang in gangs:
            known = self._known.get(gang)
            if known is None or not known.counts_at(now):
                if asked == _AT_ONCE:
                    return False
                self._ask(gang, now=now)
                asked += 1
        return True

    def _ask(self, gang: GangKey, *, now: float) -> float:
        end = now + self._remaining(gang, now=now)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        until = end if end < inf else now + _UNKNOWN_SECONDS
        self._known[gang] = _Known(end, since=now, until=until)
        return end

    def _remaining(self, gang: GangKey, *, now: float) -> float:
        known = self._run_times.remaining(gang, now=now)
        times = [time for time in (known.median, known.limit) if time is not None]
        return max(0.0, min(times)) if times else inf

    def in_order(self, gangs: Iterable[GangKey], *, now: float) -> list[tuple[GangKey, float]]:
        """Return gangs by their expected ends, those with unknown ends last."""
        found = [(gang, self.of(gang, now=now)) for gang in gangs]
        return sorted(found, key=lambda one: (one[1], one[0]))
