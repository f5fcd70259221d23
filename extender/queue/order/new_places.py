"""Where gangs that do not exist yet would be in the order."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from extender.cells.views.listings import Stepwise
from extender.queue.lines.gang_places import Rank
from extender.queue.order.facts import QueueFacts
from extender.queue.order.listing import Ranked
from extender.queue.order.standing import Standing

_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPlace:
    """The place of a gang, if it were submitted now."""

    ahead: int
    """The number of gangs ahead of it."""
    level: str = ""
    level_place: int = 1
    """Its place among the gangs of its level; 1 is the first."""


def places_of(
    new: Sequence[QueueFacts],
    in_order: Sequence[Ranked],
    *,
    standing: Callable[[QueueFacts], Standing],
) -> Stepwise[list[NewPlace]]:
    """Return where each of some gangs would be, as if it were the only new one. Yields often."""
    keys: list[Rank] = []
    for _, known in in_order:
        keys.append(known.key)
        if len(keys) % _AT_ONCE == 0:
            yield
    levels = Counter(known.level for _, known in in_order)
    found: list[NewPlace] = []
    for facts in new:
        own = standing(facts)
        ahead = bisect_right(keys, own.key)
        above = sum(count for level, count in levels.items() if level < own.level)
        found.append(
            NewPlace(ahead=ahead, level=own.level_name, level_place=max(1, ahead - above + 1))
        )
        if len(found) % _AT_ONCE == 0:
            yield
    return found
