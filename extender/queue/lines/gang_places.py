"""All waiting gangs in order, and in order within their pools."""

from bisect import bisect_left, insort

from policy.queues.pools import Pool
from policy.submission import GangKey

Rank = tuple[float | GangKey, ...]
"""The place of a gang in the queue: the lowest rank comes first, of equal ranks the lowest key.

The first number is the gang's level. The last part is a key that decides between equal numbers,
also where the gang has the place of another one."""
Place = tuple[Rank, GangKey]


class GangPlaces:
    """Sorted lists of gangs."""

    def __init__(self) -> None:
        self._all: list[Place] = []
        self._by_pool: dict[Pool, list[Place]] = {}

    def add(self, pool: Pool, place: Place) -> None:
        """Add a gang."""
        insort(self._all, place)
        insort(self._by_pool.setdefault(pool, []), place)

    def remove(self, pool: Pool, place: Place) -> None:
        """Remove a gang that was added."""
        take_out(self._all, place)
        take_out(self._by_pool[pool], place)
        if not self._by_pool[pool]:
            del self._by_pool[pool]

    def in_order(self) -> list[GangKey]:
        """Return all gangs, best rank first."""
        return [gang for _, gang in self._all]

    def pools(self) -> list[Pool]:
        """Return the pools for which gangs wait."""
        return list(self._by_pool)

    def head(self, pool: Pool) -> GangKey | None:
        """Return the best ranked gang of a pool."""
        places = self._by_pool.get(pool)
        return places[0][1] if places else None

    def first_of(self, pool: Pool, count: int) -> list[GangKey]:
        """Return the best ranked gangs of a pool."""
        return [gang for _, gang in self._by_pool.get(pool, ())[:count]]


def take_out(places: list[Place], place: Place) -> bool:
    """Remove a place from a sorted list; return whether it was there."""
    index = bisect_left(places, place)
    is_there = index < len(places) and places[index] == place
    if is_there:
        del places[index]
    return is_there
