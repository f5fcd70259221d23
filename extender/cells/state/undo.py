"""Changes that can be taken back. Private to `extender.cells`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Trial:
    """Changes that are undone, unless they are kept."""

    is_kept: bool = False

    def keep(self) -> None:
        """Let the changes stand."""
        self.is_kept = True


class Undoable:
    """State that is changed by steps, each of which says how to undo it."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] | None = None

    @property
    def is_trying(self) -> bool:
        """True inside of `what_if`."""
        return self._undo is not None

    @contextmanager
    def what_if(self) -> Iterator[Trial]:
        """Undo at the end what the body changed, unless the trial is kept; may be nested."""
        outer, trial = self._undo, Trial()
        self._undo = []
        try:
            yield trial
        finally:
            undo, self._undo = self._undo, None
            if not trial.is_kept:
                for step in reversed(undo):
                    step()
            elif outer is not None:
                outer += undo
            self._undo = outer

    def record_undo(self, undo: Callable[[], None]) -> None:
        """Say how to take a change back."""
        if self._undo is not None:
            self._undo.append(undo)
