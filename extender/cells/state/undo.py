"""Changes that can be undone: each step records how to undo it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from extender.cells.state.change_log import ChangeLog


@dataclass(slots=True)
class Trial:
    """Changes that are undone unless `keep` is called."""

    is_kept: bool = False

    def keep(self) -> None:
        """Make the changes permanent, as far as the surrounding trial, if any, is kept."""
        self.is_kept = True


class Undoable:
    """State that is changed in steps, each of which records what it changes and how to undo it."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] | None = None
        self.changes = ChangeLog()

    @property
    def is_trying(self) -> bool:
        """True inside `what_if`."""
        return self._undo is not None

    @contextmanager
    def what_if(self) -> Iterator[Trial]:
        """Undo what the body changed when it ends, unless the trial is kept; can be nested."""
        outer, trial, start = self._undo, Trial(), self.changes.begin_trial()
        self._undo = []
        try:
            yield trial
        finally:
            undo, self._undo = self._undo, None
            if not trial.is_kept:
                for step in reversed(undo):
                    step()
                self.changes.note_undone(start)
            elif outer is not None:
                outer += undo
            self._undo = outer

    def record_undo(self, undo: Callable[[], None]) -> None:
        """Record how to undo a change; does nothing outside `what_if`."""
        if self._undo is not None:
            self._undo.append(undo)
