"""What a text may look like where it serves as a name."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kube.values import size_limits
from policy.wording import describe


@dataclass(frozen=True, slots=True)
class TextRule:
    """What a text must be, in words and as a check, and how long it may be."""

    description: str
    max_length: int
    fits: Callable[[str], object]

    def problem(self, text: str) -> str | None:
        """Say what is wrong with a text, or None."""
        if len(text) > self.max_length:
            return f"must be at most {self.max_length} characters, not {len(text)}"
        return None if self.fits(text) else f"must be {self.description}, not {describe(text)}"


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


def range_problem(value: object, *, minimum: int, maximum: int) -> str:
    """Say that a value should have been a whole number between two others."""
    return f"must be a whole number from {minimum} to {maximum}, not {describe(value)}"


def parse_number(text: str) -> int | None:
    """Read a plain decimal number without sign, at most nine digits; None for anything else."""
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= 9 else None


def parse_time(text: str) -> float:
    """Read a time as Kubernetes writes it: seconds since 1970; 0 for anything else."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return found.timestamp() if found.tzinfo is not None else 0.0
