"""How far long work is, on standard error: nothing for work that takes a moment."""

import sys
import time
from typing import Final, TextIO

_FIRST_SECONDS: Final = 3.0
_TERMINAL_SECONDS: Final = 0.2
_OTHER_SECONDS: Final = 10.0


class Progress:
    """Prints what is done: one line that changes on a terminal, else a line now and then."""

    def __init__(self, output: TextIO | None = None) -> None:
        self._output = output or sys.stderr
        self._is_terminal = self._output.isatty()
        self._next = time.monotonic() + _FIRST_SECONDS
        self._width = 0

    def __call__(self, what: str, part: float | None = None) -> None:
        """Print what is done, and which part of it, unless something was printed just now."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (_TERMINAL_SECONDS if self._is_terminal else _OTHER_SECONDS)
        text = what if part is None else f"{what}: {part:.0%}"
        if self._is_terminal:
            self._output.write(f"\r{text:<{self._width}}")
            self._width = len(text)
        else:
            self._output.write(f"{text}\n")
        self._output.flush()

    def clear(self) -> None:
        """Remove the line from a terminal, before something else is printed."""
        if self._width:
            self._output.write(f"\r{'':<{self._width}}\r")
            self._output.flush()
            self._width = 0
