"""Cells and gangs that changed, for indexes that catch up when they are read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from extender.cells.state.tree import Cell
from policy.submission import GangKey

if TYPE_CHECKING:
    from extender.cells.state.placed_gangs import PlacedGang

_MOST = 10_000
"""Entries that are kept in order, and distinct older ones: beyond that, a rebuild is cheaper."""


class ChangeLog:
    """A log of cells and gangs that changed; each reader keeps its own position."""

    def __init__(self) -> None:
        self._log: list[Cell | PlacedGang] = []
        self._log_start = 0
        self._older: dict[Cell | PlacedGang, None] = {}
        """Older entries, each once: trials touch the same few cells again and again."""
        self._older_start = 0
        self.watched: dict[GangKey, None] | None = None
        """Gets the keys of gangs that change, while it is set."""

    @property
    def now(self) -> int:
        """The position of the next entry."""
        return self._log_start + len(self._log)

    def record(self, changed: "Cell | PlacedGang") -> None:
        """Record a cell whose holders, reservers or claims changed, or a gang that changed."""
        if len(self._log) >= _MOST:
            self._fold()
        self._log.append(changed)
        if self.watched is not None and not isinstance(changed, Cell):
            self.watched[changed.key] = None

    def since(self, then: int) -> "Sequence[Cell | PlacedGang] | None":
        """All entries since a position, perhaps with older ones; None if they are lost."""
        if then >= self._log_start:
            return self._log[then - self._log_start :]
        return [*self._older, *self._log] if then >= self._older_start else None

    def _fold(self) -> None:
        self._older.update(dict.fromkeys(self._log))
        self._log_start = self.now
        self._log.clear()
        if len(self._older) > _MOST:
            self._older.clear()
            self._older_start = self._log_start
