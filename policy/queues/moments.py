"""Times in annotations of users: `2026-11-20T08:00:00Z`."""

from datetime import UTC, datetime
from typing import Final

_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC).timestamp()
_LAST: Final = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


def parse_seconds(value: object) -> float | None:
    """Read a time with its time zone, in seconds since 1970; None for anything else.

    A time that `policy.wording.moment` could not show in UTC, such as one before the year 1 or
    after 9999 there, is no time: it would fail where it is told, long after it was accepted.
    """
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
        seconds = found.timestamp() if found is not None and found.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
    return seconds if seconds is not None and _FIRST <= seconds < _LAST else None
