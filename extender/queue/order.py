"""The order in which waiting gangs are planned.

A rank is a tuple of numbers that a plain function computes from a gang's facts. The lowest rank
comes first; of equal ranks the lowest key. Gangs of different VCs do not compete for guaranteed
cells, so one order of all gangs is also an order within each VC.
"""

from collections.abc import Callable
from dataclasses import dataclass

from policy.submission import GangKey, VcName


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The facts about a gang that an order may use."""

    gang: GangKey
    vc: VcName
    priority: int
    since: float
    """When its oldest member was created; after its lease expired, when the youngest pod was."""


Rank = tuple[float, ...]
Order = Callable[[Standing], Rank]


def by_priority_and_age(standing: Standing) -> Rank:
    """Higher priorities first, then the older gang."""
    return -standing.priority, standing.since
