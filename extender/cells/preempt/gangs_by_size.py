"""Gangs ranked by the leaf cells that they hold: one large victim may replace many small ones."""

from bisect import bisect_left, insort
from collections.abc import Iterator

from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang
from policy.submission import GangKey


class GangsBySize:
    """All gangs ranked by size; it catches up with changes when it is read."""

    def __init__(self, table: AllocationTable) -> None:
        self._table = table
        self._read = -1
        self._sizes: dict[GangKey, int] = {}
        self._ranked: list[tuple[int, GangKey]] = []

    def around(self, leaf_count: int) -> Iterator[PlacedGang]:
        """Gangs by the distance of their rank from a size: larger and smaller ones alternate."""
        self.refresh()
        above = bisect_left(self._ranked, (leaf_count, GangKey("", "")))
        below = above - 1
        while below >= 0 or above < len(self._ranked):
            if above < len(self._ranked):
                yield self._table.gangs[self._ranked[above][1]]
            if below >= 0:
                yield self._table.gangs[self._ranked[below][1]]
            above, below = above + 1, below - 1

    def audit(self) -> bool:
        """True if the ranking agrees with the gangs."""
        self.refresh()
        gangs = self._table.gangs.values()
        return self._ranked == sorted((g.leaf_count, g.key) for g in gangs if g.leaf_count)

    def refresh(self) -> None:
        """Catch up with all changes since the last time."""
        changes = self._table.changes
        changed = changes.since(self._read) if self._read >= 0 else None
        self._read = changes.now
        if changed is None:
            gangs = self._table.gangs.values()
            self._sizes = {gang.key: gang.leaf_count for gang in gangs if gang.leaf_count}
            self._ranked = sorted((size, key) for key, size in self._sizes.items())
            return
        for key in dict.fromkeys(gang.key for gang in changed if isinstance(gang, PlacedGang)):
            self._update(key)

    def _update(self, key: GangKey) -> None:
        gang = self._table.gangs.get(key)
        old, new = self._sizes.pop(key, 0), gang.leaf_count if gang else 0
        if old:
            del self._ranked[bisect_left(self._ranked, (old, key))]
        if new:
            self._sizes[key] = new
            insort(self._ranked, (new, key))
