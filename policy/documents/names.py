"""Names and other short texts in documents: what they may look like.

All functions here return the value or raise ValueError in plain words.
"""

import re
from collections.abc import Callable
from typing import Annotated, Final

from pydantic import BeforeValidator

from policy.rules.rule_table import FAIL, RETAIN
from policy.wording import describe, listing, quote

MAX_NAME_CHARS: Final = 253
DNS_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
DNS_NAME: Final = rf"{DNS_LABEL}(?:\.{DNS_LABEL})*"
_KUBERNETES_NAME: Final = re.compile(DNS_NAME)


def check_line(text: str, *, most: int) -> str:
    """Pass printable text up to a length."""
    if len(text) > most:
        raise ValueError(f"is {len(text)} characters long; at most {most} are allowed")
    if not text.isprintable():
        raise ValueError("must not contain characters that cannot be printed")
    return text


def check_name(value: object) -> str:
    """Pass a name that Kubernetes does not restrict: of a user, a group or a leaf type."""
    if not isinstance(value, str):
        raise ValueError(f"must be a name in quotes, not {describe(value)}")
    if not value or value != value.strip():
        raise ValueError(f"must be a name without spaces around it, not {describe(value)}")
    return check_line(value, most=MAX_NAME_CHARS)


def check_class_name(value: object) -> str:
    """Pass the name of a Kubernetes PriorityClass."""
    if not isinstance(value, str):
        raise ValueError(f"{describe(value)} is not a name")
    if value in (RETAIN, FAIL):
        raise ValueError(f"{quote(value)} has a meaning in rules and cannot be a class")
    if len(value) > MAX_NAME_CHARS or not _KUBERNETES_NAME.fullmatch(value):
        allowed = "lower-case letters, digits, - and ., a letter or digit at both ends"
        raise ValueError(f"{quote(value)} is not a Kubernetes name ({allowed})")
    return value


def class_or(*words: str) -> Callable[[object], str]:
    """Make a check that passes these words and names of classes."""

    def check(value: object) -> str:
        if value in words:
            return str(value)
        try:
            return check_class_name(value)
        except ValueError as exc:
            raise ValueError(f"must be {listing(words)} or the name of a class: {exc}") from exc

    return check


def matching(pattern: str, what: str, *, most: int = MAX_NAME_CHARS) -> Callable[[object], str]:
    """Make a check that passes texts that match a pattern as a whole."""
    compiled = re.compile(pattern)

    def check(value: object) -> str:
        if not isinstance(value, str) or len(value) > most or not compiled.fullmatch(value):
            raise ValueError(f"must be {what}, not {describe(value)}")
        return value

    return check


_QUANTITY: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMGTPE]i|[mkMGTPE])?")
_UNITS: Final = {
    "m": 1e-3,
    **{unit: 1e3**power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": 1024.0**power for power, unit in enumerate("KMGTPE", start=1)},
}


def parse_quantity(value: object) -> float:
    """Read a quantity of Kubernetes."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    found = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f'must be a quantity such as 4, "500m" or 16Gi, not {describe(value)}')
    return float(found[1]) * _UNITS.get(found[2] or "", 1.0)


def check_quantity(value: object) -> str:
    """Pass a quantity of Kubernetes, as text."""
    parse_quantity(value)
    return str(value)


CheckedName = Annotated[str, BeforeValidator(check_name)]
ClassNameField = Annotated[str, BeforeValidator(check_class_name)]
