"""Leaf cells of a pool that gangs may not use for a time, in a copy of the queue.

Capacity as a step function of time: from `begins` until `ends` a pool has fewer leaf cells for all
gangs that are not exempt. A gang that may still run when a closure begins takes nothing that the
closure needs then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

CopiedPool = tuple[str, ...]
"""A pool in the copy: a VC, or all of them, and a leaf type; pinned cells are not told apart."""
Ends = Sequence[tuple[float, int, int]]
"""When gangs of the pool end, their numbers, and the leaf cells that they free; the next first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure:
    """A maintenance window, or a reservation in advance; times are seconds from now."""

    name: str
    pool: CopiedPool
    leaf_cells: int
    begins: float
    ends: float


@dataclass(slots=True, eq=False)
class PoolClosures:
    """The closures of one pool while a future is played."""

    closures: list[Closure] = field(default_factory=list)
    _used: dict[str, int] = field(default_factory=dict)
    """Leaf cells that exempt gangs hold, by closure."""

    def note_use(self, exempt: Iterable[str], leaf_cells: int) -> None:
        """Exempt gangs have got leaf cells, or given them up if the number is negative."""
        for name in exempt:
            self._used[name] = self._used.get(name, 0) + leaf_cells

    def withheld(self, *, now: float, until: float, exempt: frozenset[str], ends: Ends) -> int:
        """Return how many free leaf cells a gang leaves alone that may run until some time."""
        return sum(
            max(0, one.leaf_cells - self._used.get(one.name, 0) - _freed(one, ends, now=now))
            for one in self.closures
            if one.name not in exempt and now < one.ends and until > one.begins
        )


def _freed(closure: Closure, ends: Ends, *, now: float) -> int:
    """Return how many leaf cells become free before a closure begins."""
    if closure.begins <= now:
        return 0
    return sum(count for end, _, count in ends if end <= closure.begins)
