"""Kubernetes quantities that count whole things: `8`, `"8"`, `"2k"`, `"8000m"`, `"1e1"`."""

import re
from fractions import Fraction
from typing import Final

_QUANTITY: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]{0,18})(?:\.(?P<part>[0-9]{0,18}))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,2})|(?P<suffix>[KMGTPE]i|[numkMGTPE]))?"
)
_FACTORS: Final = {
    **{suffix: Fraction(1_000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1_024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
    **{suffix: Fraction(1, 1_000) ** power for power, suffix in enumerate("mun", start=1)},
}


def parse_count(value: object) -> int | None:
    """Read a quantity that counts whole things; None for anything else.

    `1500m` is a quantity but no count, and so None too.
    """
    if isinstance(value, str):
        if value.isdecimal() and value.isascii() and len(value) <= 18:
            return int(value)
        return _parse_long_form(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def _parse_long_form(text: str) -> int | None:
    match = _QUANTITY.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        return None
    part = match["part"] or ""
    number = Fraction(int(match["whole"] + part), 10 ** len(part))
    number *= Fraction(10) ** int(match["exponent"] or 0)
    number *= _FACTORS.get(match["suffix"], 1)
    if number.denominator != 1:
        return None
    return -number.numerator if match["sign"] == "-" else number.numerator
