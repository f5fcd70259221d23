"""Which gangs have not run for long enough to be preempted, and until when.

    started ──the minimum is over──▶ may be preempted
       └──all its members are gone──▶ forgotten

The minimum may change at any time: each gang counts from its start. All times are seconds of one
clock that never goes back.
"""

from heapq import heapify, heappop, heappush
from math import inf

from policy.submission import GangKey


class MinimumRuns:
    """The starts of gangs, and which of them are protected."""

    def __init__(self) -> None:
        self._minimum = 0.0
        self._started: dict[GangKey, float] = {}
        self._told: dict[GangKey, int] = {}
        """The minimum runs that were reported and are not over."""
        self._new: dict[GangKey, None] = {}
        """Gangs that have started since the last update."""
        self._ends: list[tuple[float, GangKey]] = []

    def minimum_run(self, gang: GangKey) -> int:
        """Return the minimum run that protects a gang, in seconds; 0 if none does."""
        return self._told.get(gang, 0)

    @property
    def next_end(self) -> float:
        """When the next minimum run is over; infinite if none is under way."""
        return self._ends[0][0] if self._ends else inf

    def start(self, gang: GangKey, *, at: float) -> None:
        """A member of a gang runs; its earliest start counts."""
        if at < self._started.get(gang, inf):
            self._started[gang] = at
            self._new[gang] = None

    def end(self, gang: GangKey) -> None:
        """A gang has no members any more."""
        self._started.pop(gang, None)
        self._told.pop(gang, None)
        self._new.pop(gang, None)

    def update(self, minimum: float, *, now: float) -> list[GangKey]:
        """Return whose protection begins or ends now, if gangs must run for `minimum` seconds."""
        if minimum != self._minimum:
            self._minimum, self._ends = minimum, []
            self._new = dict.fromkeys(self._started)
        changed = dict.fromkeys([*self._new, *self._take_due(now)])
        self._new.clear()
        return [gang for gang in changed if self._is_changed(gang, now=now)]

    def _take_due(self, now: float) -> list[GangKey]:
        due: list[GangKey] = []
        while self._ends and self._ends[0][0] <= now:
            due.append(heappop(self._ends)[1])
        if len(self._ends) > 2 * len(self._told) + 64:  # most of them have ended since
            self._ends = [(end, gang) for end, gang in self._ends if gang in self._told]
            heapify(self._ends)
        return due

    def _is_changed(self, gang: GangKey, *, now: float) -> bool:
        if gang not in self._started:
            return False
        end, before = self._started[gang] + self._minimum, self._told.pop(gang, 0)
        seconds = int(self._minimum) if end > now else 0
        if seconds:
            heappush(self._ends, (end, gang))
            self._told[gang] = seconds
        return seconds != before
