"""Numbers, durations, moments and changes, as people read them."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

NOTHING: Final = "\u2013"
_MINUS: Final = "\u2212"
NARROW: Final = "\u00a0"
"""Between a number and its unit: no line ends there."""
MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 86400.0
_MONTHS: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9998, 1, 1, tzinfo=UTC)
_NOTICED_SHARE: Final = 0.01
_NOTICED_SECONDS: Final = 1.0


class Direction(StrEnum):
    """Which way a figure goes, seen by the people who wait."""

    LESS = "less"
    MORE = "more"
    SAME = "same"


def duration(seconds: float) -> str:
    """Write a duration with two digits or so: `45 s`, `3.4 min`, `14 min`, `28 h`, `4.9 d`."""
    if not math.isfinite(seconds):
        return NOTHING
    sign, size = (_MINUS if seconds <= -0.5 else ""), abs(seconds)
    if size < MINUTE:
        return f"{sign}{round(size)}{NARROW}s"
    if size < HOUR:
        return f"{sign}{figure(size / MINUTE)}{NARROW}min"
    if size < 2 * DAY:
        return f"{sign}{figure(size / HOUR)}{NARROW}h"
    return f"{sign}{figure(size / DAY)}{NARROW}d"


def figure(value: float) -> str:
    """Write a number: one decimal below ten, else whole: `3.4`, `14`, `1,200`."""
    if not math.isfinite(value):
        return NOTHING
    if abs(value) >= 9.95:
        return f"{value:,.0f}"
    shown = f"{value:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown


def share(value: float) -> str:
    """Write a share of 1: `71.2 %`."""
    return f"{value * 100:.1f}{NARROW}%" if math.isfinite(value) else NOTHING


def counted(count: int, what: str) -> str:
    """Write a number of things: `1 gang`, `2,000 gangs`."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def moment(at: float) -> str:
    """Write a moment to the minute: `2026-03-01 12:00`."""
    return f"{_date(at):%Y-%m-%d %H:%M}" if math.isfinite(at) else NOTHING


def tick_moment(at: float, *, is_month: bool) -> str:
    """Write a moment below an axis: a time, a day, a month, or a year where one begins."""
    date = _date(at)
    month = _MONTHS[date.month - 1]
    if is_month:
        return str(date.year) if date.month == 1 else month
    return f"{date.day}{NARROW}{month}" if at % DAY == 0 else f"{date:%H:%M}"


def month_at(at: float, *, later: int = 0) -> tuple[int, float]:
    """Return the number of the month of a moment, or of a later month, and when it begins."""
    date = _date(at)
    months = date.year * 12 + date.month - 1 + later
    begin = datetime(min(months // 12, 9999), months % 12 + 1, 1, tzinfo=UTC)
    return months, (begin - _EPOCH).total_seconds()


def direction(before: float, after: float, *, least: float = _NOTICED_SECONDS) -> Direction:
    """Tell whether a figure changed so much that it is worth a word."""
    change = after - before
    if not math.isfinite(change) or abs(change) < max(least, abs(before) * _NOTICED_SHARE):
        return Direction.SAME
    return Direction.LESS if change < 0 else Direction.MORE


def change(before: float, after: float) -> str:
    """Say by how much a wait grew or shrank: `33 % less`, `12 % longer`, `4.1 times as long`."""
    if before <= 0 or not math.isfinite(after / before):
        return "longer" if after > before else "less"
    ratio = after / before
    if ratio >= 3:
        return f"{figure(ratio)} times as long"
    shown = f"{abs(ratio - 1) * 100:.0f}{NARROW}%"
    return f"{shown} less" if ratio < 1 else f"{shown} longer"


def listed(parts: Sequence[str]) -> str:
    """Join parts of a sentence: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _date(at: float) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=at)
    except OverflowError:
        return _LAST if at > 0 else _FIRST
