"""What a text may look like where it serves as a name, and how a bad value is shown."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kube.values import size_limits

_SHOWN_LENGTH: Final = 60
_SHOWN_NUMBER: Final = 2**63


@dataclass(frozen=True, slots=True)
class TextRule:
    """What a text must be, as words and as a test, and how long it may be."""

    description: str
    max_length: int
    fits: Callable[[str], object]

    def problem(self, text: str) -> str | None:
        """Say what is wrong with a text, or None."""
        if len(text) > self.max_length:
            return f"must be at most {self.max_length} characters, not {len(text)}"
        return None if self.fits(text) else f"must be {self.description}, not {show(text)}"


def _pattern(text: str) -> Callable[[str], object]:
    return re.compile(text).fullmatch


NAMESPACE: Final = TextRule("a DNS label", 63, _pattern("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"))
OBJECT_NAME: Final = TextRule("a DNS name", 253, _pattern("[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?"))
NAME_PREFIX: Final = TextRule("the start of a DNS name", 253, _pattern("[-.a-z0-9]*"))
LABEL_VALUE: Final = TextRule(
    "a label value", 63, _pattern("[A-Za-z0-9](?:[-_.A-Za-z0-9]*[A-Za-z0-9])?")
)
FREE_TEXT: Final = TextRule(
    "text without control characters",
    size_limits.MAX_TEXT_LENGTH,
    _pattern(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]*"),
)
"""Names that Kubernetes does not restrict; Postgres and terminals do."""


def show(value: object) -> str:
    """Quote a value of unknown type in a message: short, on one line, always the same."""
    if isinstance(value, str):
        cut = value[:_SHOWN_LENGTH]
        return json.dumps(cut) + ("…" if len(value) > len(cut) else "")
    if value is None or isinstance(value, bool | float):
        return json.dumps(value)
    if isinstance(value, int):
        return str(value) if abs(value) < _SHOWN_NUMBER else "a number of more than 63 bits"
    if isinstance(value, list | tuple):
        return "a list"
    return "a mapping" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def range_problem(value: object, *, minimum: int, maximum: int) -> str:
    """Say that a value should have been a whole number between two others."""
    return f"must be a whole number from {minimum} to {maximum}, not {show(value)}"


def parse_number(text: str) -> int | None:
    """Read a plain decimal number without sign, at most nine digits; None for anything else."""
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= 9 else None
