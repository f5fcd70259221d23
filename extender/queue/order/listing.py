"""All waiting gangs with their places: in the queue, in their level and in their pool."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from extender.cells.views.listings import Stepwise
from extender.queue.order.facts import QueueFacts
from extender.queue.order.standing import Standing
from policy.queues.pools import Pool, pool_of
from policy.submission import GangKey

Ranked = tuple[QueueFacts, Standing]
_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGang:
    """A gang that waits, and its places; 1 is the first."""

    facts: QueueFacts
    standing: Standing
    place: int
    length: int
    """The number of gangs in the queue."""
    level_place: int
    pool_place: int
    ahead: Ranked | None = None
    """The gang directly ahead in the same pool."""

    @property
    def pool(self) -> Pool:
        """Its pool."""
        return pool_of(self.facts)


def list_gangs(in_order: Iterable[Ranked]) -> Stepwise[dict[GangKey, ListedGang]]:
    """Give each gang its places. Yields often."""
    ranked = list(in_order)
    levels: Counter[int] = Counter()
    pools: Counter[Pool] = Counter()
    last: dict[Pool, Ranked] = {}
    found: dict[GangKey, ListedGang] = {}
    for place, (facts, standing) in enumerate(ranked, start=1):
        pool = pool_of(facts)
        levels[standing.level] += 1
        pools[pool] += 1
        found[facts.gang] = ListedGang(
            facts=facts,
            standing=standing,
            place=place,
            length=len(ranked),
            level_place=levels[standing.level],
            pool_place=pools[pool],
            ahead=last.get(pool),
        )
        last[pool] = facts, standing
        if place % _AT_ONCE == 0:
            yield
    return found
