"""Durations in documents and annotations: `90s`, `10m`, `4h`, `1h30m`, `7d`, `2w`."""

import re
from typing import Final

from policy.wording import describe

MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY
LONGEST: Final = 52 * WEEK
"""No wait or run is planned for longer; it keeps sums of durations exact."""
_UNITS: Final = (WEEK, DAY, HOUR, MINUTE, 1.0)
_DURATION: Final = re.compile(
    r"(?:([0-9]{1,9})w)?(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?",
    re.ASCII,
)


def parse_duration(value: object) -> float:
    """Read a duration, in seconds. Raises ValueError in plain words."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) and value else None
    if found is None:
        raise ValueError(f"must be a duration such as 90s, 10m, 4h or 7d, not {describe(value)}")
    parts = zip(found.groups(), _UNITS, strict=True)
    seconds = sum(int(part) * unit for part, unit in parts if part)
    if seconds > LONGEST:
        raise ValueError(f"must be at most 52w, not {describe(value)}")
    return seconds


def format_duration(seconds: float) -> str:
    """Write a duration for people: `24 h`, `2 h 5 min`, `1 min 30 s`; from an hour to the minute.

    Days are written as hours, so that sums can be checked by adding.
    """
    whole = round(abs(seconds))
    sign = "-" if seconds < 0 and whole else ""
    if whole >= HOUR:
        whole = round(whole / MINUTE) * int(MINUTE)
    hours, rest = divmod(whole, int(HOUR))
    minutes, left = divmod(rest, int(MINUTE))
    parts = ((hours, "h"), (minutes, "min"), (left, "s"))
    return sign + (" ".join(f"{one} {unit}" for one, unit in parts if one) or "0 s")
