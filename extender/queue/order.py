"""In which order waiting gangs are looked at.

A rank is a tuple of numbers, made by a plain function of what a gang is; the least comes first, and
of equal ones the least key. Gangs of different VCs do not compete for guaranteed cells, so that one
order over all is an order within each.
"""

from collections.abc import Callable
from dataclasses import dataclass

from policy.submission import GangKey, VcName


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What an order may look at."""

    gang: GangKey
    vc: VcName
    priority: int
    since: float
    """When its oldest member was created, or the youngest of all when its last lease ran out."""


Rank = tuple[float, ...]
Order = Callable[[Standing], Rank]


def by_priority_and_age(standing: Standing) -> Rank:
    """Higher priorities first, then the older gang."""
    return -standing.priority, standing.since
