"""Which gang of a pool is the next one to get a reservation.

Gangs that wait for something else than cells, or that fit nowhere, are passed over: else some that
never start would keep all others of the pool from a reservation, and so from starting. One step
looks at a limited number of gangs, and the next step goes on behind them.
"""

from collections.abc import Callable

from extender.queue.queued_gang import QueuedGang
from extender.queue.seen_gangs import SeenGangs
from extender.queue.waiting_gangs import WaitingGangs
from policy.queues.pools import Pool

_LOOKS = 64
"""Gangs of a pool that one step looks at."""


class PoolHeads:
    """Remembers how far each pool was looked through."""

    def __init__(self, waiting: WaitingGangs, seen: SeenGangs) -> None:
        self._waiting = waiting
        self._seen = seen
        self._passed: dict[Pool, int] = {}
        """How many of the best ranked gangs of a pool were passed over."""

    def next(
        self, pool: Pool, may_reserve: Callable[[QueuedGang], bool], *, asked_by: float
    ) -> QueuedGang | None:
        """Return the best ranked gang that may get a reservation.

        None if none is found now, or if it has asked later than `asked_by`: it may start soon.
        """
        passed = self._passed.pop(pool, 0)
        looked_at = self._waiting.first_of(pool, passed + _LOOKS)[passed:]
        for place, key in enumerate(looked_at):
            gang = self._seen.find(key)
            if gang is not None and may_reserve(gang):
                if gang.first.asked > asked_by:
                    return None
                if passed + place:
                    self._passed[pool] = passed + place
                return gang
        if len(looked_at) == _LOOKS:
            self._passed[pool] = passed + _LOOKS
        return None

    def begin_again(self, pool: Pool) -> None:
        """Begin with the best ranked gang of a pool the next time."""
        self._passed.pop(pool, None)
