"""What changed lately, for indexes that are brought up to date when somebody asks them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from extender.cells.state.tree import Cell

if TYPE_CHECKING:
    from extender.cells.state.placed_gangs import PlacedGang

_MOST = 10_000
"""Changes that are remembered one by one, and different ones beyond: building anew costs less."""


class ChangeLog:
    """A log of cells and gangs that changed; who reads it remembers how far it has read."""

    def __init__(self) -> None:
        self._log: list[Cell | PlacedGang] = []
        self._log_start = 0
        self._older: dict[Cell | PlacedGang, None] = {}
        """What changed before, each once: mostly the same few cells, by what was only tried."""
        self._older_start = 0

    @property
    def now(self) -> int:
        """Where the next change will be."""
        return self._log_start + len(self._log)

    def record(self, changed: "Cell | PlacedGang") -> None:
        """Who holds or has reserved leaves of a cell, or may; or a gang's standing or size."""
        if len(self._log) >= _MOST:
            self._fold()
        self._log.append(changed)

    def since(self, then: int) -> "Sequence[Cell | PlacedGang] | None":
        """What changed since then, and perhaps more; None if that is forgotten."""
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
