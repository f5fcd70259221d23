"""An eviction ranking as far as its bins lie on allowed nodes, without ranking these anew.

It reads as the ranking of these nodes alone would: the same bins in the same order. What it costs
grows with the nodes that are left out, so it is for requests that leave out a minority of them.
"""

from collections.abc import Iterator

from extender.cells.fit.demand import AllowedNodes
from extender.cells.preempt.damage import Damage
from extender.cells.preempt.eviction_ranking import Entry, EvictionRanking
from extender.cells.state.tree import Cell


class EvictionsWithin:
    """The part of a ranking that lies on allowed nodes."""

    def __init__(self, whole: EvictionRanking, allowed: AllowedNodes) -> None:
        self._whole = whole
        self._allowed = allowed
        self.victims = whole.victims
        self.refresh = whole.refresh

    @property
    def capacity(self) -> int:
        """Members that its bins would hold if all gangs ended that may be ended."""
        left_out = self._allowed.left_out(self._whole.tree)
        return self._whole.capacity - sum(map(self._whole.capacity_of, left_out))

    def cheapest(self) -> Iterator[tuple[Damage, Cell]]:
        """Bins with the damage of clearing each, the least damage first."""
        return (one for one in self._whole.cheapest() if self._allowed(one[1]))

    def entry(self, bin_: Cell) -> Entry | None:
        """The entry of a bin; None if it cannot be cleared or does not belong here."""
        return self._whole.entry(bin_) if self._allowed(bin_) else None

    def bins_in(self, cell: Cell) -> Iterator[Cell]:
        """The bins in a cell above the nodes."""
        return (bin_ for bin_ in self._whole.bins_in(cell) if self._allowed(bin_))

    def __len__(self) -> int:
        left_out = self._allowed.left_out(self._whole.tree)
        return len(self._whole) - sum(map(self._whole.entries_of, left_out))
