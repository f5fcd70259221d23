"""Kubernetes quantities: counts such as `8`, `"2k"`, `"8000m"`, and amounts such as `"1500m"`."""

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil
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


def parse_amount(value: object, *, is_cpu: bool) -> int:
    """Read a quantity in thousandths of a CPU, or in whole units of anything else, rounded up.

    0 for anything that is no quantity, or negative.
    """
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return _parse_amount(str(value), 1000 if is_cpu else 1)
    return 0


@lru_cache(maxsize=4096)
def _parse_amount(text: str, factor: int) -> int:
    number = _parse_number(text)
    return 0 if number is None or number < 0 else ceil(number * factor)


def _parse_long_form(text: str) -> int | None:
    number = _parse_number(text)
    return None if number is None or number.denominator != 1 else number.numerator


def _parse_number(text: str) -> Fraction | None:
    match = _QUANTITY.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        return None
    part = match["part"] or ""
    number = Fraction(int(match["whole"] + part), 10 ** len(part))
    number *= Fraction(10) ** int(match["exponent"] or 0)
    number *= _FACTORS.get(match["suffix"], 1)
    return -number if match["sign"] == "-" else number
