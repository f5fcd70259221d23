"""Cells and gangs that changed, for indexes that catch up when they are read.

Entries have positions, and each reader keeps the one up to which it has read. A trial that is
undone leaves everything as it was. So its entries concern only those who have read within it: they
see all of them again, each once. Others see none, however many trials there were meanwhile.

    reader A reads 5 ─▶ trial begins at 5: entries 5 to 8, reader B reads 9 ─▶ undone: 9 to 12
    then A sees nothing, B sees the entries of the trial
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from extender.cells.state.tree import Cell
from policy.submission import GangKey

if TYPE_CHECKING:
    from extender.cells.state.placed_gangs import PlacedGang

_MOST = 10_000
"""Entries that are kept in order, and distinct older ones: beyond that, a rebuild is cheaper."""


@dataclass(frozen=True, slots=True)
class _Undone:
    """A trial that was undone, and within which somebody has read."""

    start: int
    end: int
    changed: "dict[Cell | PlacedGang, None]"


class ChangeLog:
    """A log of cells and gangs that changed; each reader keeps its own position."""

    def __init__(self) -> None:
        self._next = 0
        self._log: list[Cell | PlacedGang] = []
        self._at: list[int] = []
        """The position of each entry."""
        self._log_start = 0
        self._undone: list[_Undone] = []
        self._undone_entries = 0
        self._older: dict[Cell | PlacedGang, None] = {}
        """Older entries, each once: the same few cells change again and again."""
        self._older_start = 0
        self._last_read = 0
        self.watched: dict[GangKey, None] | None = None
        """Gets the keys of gangs that change, while it is set."""

    @property
    def now(self) -> int:
        """The position of the next entry; who asks has read all that come before it."""
        self._last_read = self._next
        return self._next

    def record(self, changed: "Cell | PlacedGang") -> None:
        """Record a cell whose holders, reservers or claims changed, or a gang that changed."""
        if len(self._log) + self._undone_entries >= _MOST:
            self._fold()
        self._log.append(changed)
        self._at.append(self._next)
        self._next += 1
        if self.watched is not None and not isinstance(changed, Cell):
            self.watched[changed.key] = None

    def since(self, then: int) -> "Sequence[Cell | PlacedGang] | None":
        """All entries since a position, perhaps with older ones; None if they are lost."""
        if then >= self._log_start:
            entries = self._log[bisect_left(self._at, then) :]
            undone = self._undone_around(then)
            return entries if undone is None else [*undone.changed, *entries]
        return [*self._older, *self._log] if then >= self._older_start else None

    def count_since(self, then: int) -> int | None:
        """How many entries `since` would return; None if they are lost."""
        if then >= self._log_start:
            undone = self._undone_around(then)
            inside = 0 if undone is None else len(undone.changed)
            return inside + len(self._log) - bisect_left(self._at, then)
        return len(self._older) + len(self._log) if then >= self._older_start else None

    def _undone_around(self, then: int) -> _Undone | None:
        """Return the trial within which a position lies."""
        index = bisect_left(self._undone, then, key=lambda one: one.end)
        one = self._undone[index] if index < len(self._undone) else None
        return one if one is not None and one.start < then < one.end else None

    # -- trials

    def begin_trial(self) -> int:
        """Return the position at which a trial begins: nobody has read from there on."""
        return self._next

    def note_undone(self, start: int) -> None:
        """Everything since a position was undone, and what this changed is recorded, too."""
        if start < self._log_start or start == self._next:
            return
        first = bisect_left(self._at, start)
        changed = dict.fromkeys(self._log[first:])
        del self._log[first:], self._at[first:]
        while self._undone and self._undone[-1].start >= start:
            inner = self._undone.pop()
            self._undone_entries -= len(inner.changed)
            changed.update(inner.changed)
        if self._last_read <= start:
            self._next = start
            return
        self._next += 1  # who reads now is not within the trial any more
        self._undone.append(_Undone(start, self._next, changed))
        self._undone_entries += len(changed)

    def _fold(self) -> None:
        for one in self._undone:
            self._older.update(one.changed)
        self._older.update(dict.fromkeys(self._log))
        self._log_start = self._next
        self._log.clear()
        self._at.clear()
        self._undone.clear()
        self._undone_entries = 0
        if len(self._older) > _MOST:
            self._older.clear()
            self._older_start = self._log_start
