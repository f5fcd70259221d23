"""What changed lately, for indexes that are brought up to date when somebody asks them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from extender.cells.tree import Cell

if TYPE_CHECKING:
    from extender.cells.gangs import Gang

_MOST = 50_000
"""Changes that are remembered: beyond, building an index anew costs less than following them."""


class Changes:
    """A log of cells and gangs that changed; who reads it remembers how far it has read."""

    def __init__(self) -> None:
        self._log: list[Cell | Gang] = []
        self._forgotten = 0

    @property
    def now(self) -> int:
        """Where the next change will be."""
        return self._forgotten + len(self._log)

    def note(self, changed: "Cell | Gang") -> None:
        """Who holds or has reserved leaves of a cell, or may; or a gang's standing or size."""
        if len(self._log) >= _MOST:
            self._forgotten += len(self._log)
            self._log.clear()
        self._log.append(changed)

    def since(self, then: int) -> "Sequence[Cell | Gang] | None":
        """What changed since then; None if that is forgotten."""
        if then < self._forgotten:
            return None
        return self._log[then - self._forgotten :]
