"""How long one gang is the first of its pool and does not start: starvation."""

from collections.abc import Mapping

from policy.queues.pools import Pool
from policy.submission import GangKey


class HeadWaits:
    """Follows the first gangs of all pools."""

    def __init__(self) -> None:
        self._heads: dict[Pool, tuple[GangKey, float]] = {}
        self.longest = 0.0
        """The longest time, in seconds."""

    def update(self, heads: Mapping[Pool, GangKey], *, now: float) -> None:
        """Compare the first gangs with those of before."""
        for pool in [pool for pool in self._heads if pool not in heads]:
            self._leave(pool, now=now)
        for pool, gang in heads.items():
            known = self._heads.get(pool)
            if known is None or known[0] != gang:
                self._leave(pool, now=now)
                self._heads[pool] = gang, now

    def finish(self, *, now: float) -> None:
        """Count the gangs that still are the first of their pools."""
        for pool in list(self._heads):
            self._leave(pool, now=now)

    def _leave(self, pool: Pool, *, now: float) -> None:
        known = self._heads.pop(pool, None)
        if known is not None:
            self.longest = max(self.longest, now - known[1])
