"""Regular expressions of rules: found anywhere unless anchored, in time linear in the text.

The engine is RE2: no pattern can make it slow, and it refuses patterns that would need
backtracking. `PatternIndex` searches for all patterns of a table in one pass over the text, so the
cost of a decision hardly depends on the number of rules (about 1 µs for 1,000 patterns, against
1.5 µs for each one alone).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import re2

from policy.wording import describe, quote

MAX_CHARS: Final = 4096
_PATTERN_BYTES: Final = 1 << 17
"""Memory of one compiled pattern; a larger one is refused."""
_INDEX_BYTES: Final = 16 << 20


def _options(max_bytes: int) -> re2.Options:
    options = re2.Options()
    options.max_mem = max_bytes
    options.never_capture = True
    # It would write to stderr; the problem explains the error instead.
    options.log_errors = False
    return options


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression, compiled once; equal by its text."""

    source: str
    _compiled: Any = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.source

    @property
    def cost(self) -> int:
        """What it took to compile, in the unit of `policy.documents.models.CompileBudget`."""
        return int(self._compiled.programsize)

    def found_in(self, text: str) -> bool:
        """Whether the pattern occurs in the text."""
        return self._compiled.search(text.encode("utf-8", "replace")) is not None


def parse_pattern(value: object) -> Pattern:
    """Compile a pattern. Raises ValueError in plain words."""
    if not isinstance(value, str):
        raise ValueError(f"must be a regular expression in quotes, not {describe(value)}")
    if len(value) > MAX_CHARS:
        raise ValueError(f"is {len(value)} characters long; at most {MAX_CHARS} are allowed")
    try:
        compiled = re2.compile(value.encode("utf-8", "replace"), _options(_PATTERN_BYTES))
    except re2.error as exc:
        raise ValueError(f"is not a valid regular expression: {_reason(exc)}") from exc
    return Pattern(value, compiled)


def _reason(error: Exception) -> str:
    """Show the engine's words, `missing ): (a`, with the part of the pattern in quotes."""
    detail = error.args[0] if error.args else b""
    text = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
    what, colon, where = text.partition(": ")
    return f"{what} in {quote(where)}" if colon else what


class PatternIndex:
    """Finds the places of a sequence whose pattern occurs in a text.

    Sets of places are whole numbers used as bit sets: bit `i` is place `i`.
    """

    __slots__ = ("_masks", "_patterns", "_set", "always")

    def __init__(self, patterns: Sequence[Pattern | None]) -> None:
        """Index the patterns; None is found in every text."""
        self.always = 0  # the places without a pattern
        masks: dict[Pattern, int] = {}
        for place, pattern in enumerate(patterns):
            if pattern is None:
                self.always |= 1 << place
            else:
                masks[pattern] = masks.get(pattern, 0) | 1 << place
        self._patterns = tuple(masks)
        # Number 0 of the set is a pattern that always matches, see `_found`.
        self._masks = (0, *masks.values())
        self._set = _build_set(self._patterns) if masks else None

    def places(self, text: str) -> int:
        """Return the places whose pattern is found in the text."""
        places = self.always
        for number in self._found(text) if self._patterns else ():
            places |= self._masks[number]
        return places

    def places_any(self, texts: Sequence[str]) -> int:
        """Return the places whose pattern is found in at least one of the texts."""
        places = self.always
        if self._patterns:
            for text in texts:
                places |= self.places(text)
        return places

    def _found(self, text: str) -> Sequence[int]:
        found: Sequence[int] | None = None
        if self._set is not None:
            found = self._set.Match(text.encode("utf-8", "replace"))
        # Out of memory looks like "no match"; then even number 0 is missing.
        return found if found is not None else self._found_one_by_one(text)

    def _found_one_by_one(self, text: str) -> Sequence[int]:
        numbers = enumerate(self._patterns, start=1)
        return [number for number, pattern in numbers if pattern.found_in(text)]


def _build_set(patterns: Sequence[Pattern]) -> re2.Set | None:
    """Compile all patterns into one automaton; None if it would need too much memory."""
    combined = re2.Set.SearchSet(_options(_INDEX_BYTES))
    try:
        combined.Add(b"")
        for pattern in patterns:
            combined.Add(pattern.source.encode("utf-8", "replace"))
        combined.Compile()
    except re2.error:
        return None
    return combined
