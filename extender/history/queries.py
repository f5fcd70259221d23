"""What parameters of requests mean: moments, spans and choices."""

from collections.abc import Mapping
from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import Final

from policy.errors import RequestError
from policy.wording import describe, moment

_USUAL_DAYS: Final = 30
_MOST_DAYS: Final = 1100
_FIRST_YEAR: Final = 1970


def check_known(query: Mapping[str, str], known: frozenset[str]) -> None:
    """Refuse parameters that do not exist."""
    for name in query:
        if name not in known:
            raise RequestError.at(name, f"is no parameter; there are {', '.join(sorted(known))}")


def read_choice(query: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str | None:
    """Read one of some choices; None if it is not given."""
    text = query.get(name)
    if text is not None and text not in choices:
        raise RequestError.at(name, f"must be one of {', '.join(choices)}, not {describe(text)}")
    return text


def read_span(query: Mapping[str, str], *, now: datetime) -> tuple[datetime, datetime]:
    """Read `since` and `until`: the last 30 days if neither is given."""
    until = read_time(query, "until") or now
    since = read_time(query, "since") or until - timedelta(days=_USUAL_DAYS)
    if since >= until:
        raise RequestError.at("since", f"must be before until, which is {moment(until)}")
    if until - since > timedelta(days=_MOST_DAYS):
        raise RequestError.at("since", f"must be at most {_MOST_DAYS} days before until")
    return since, until


def read_time(query: Mapping[str, str], name: str) -> datetime | None:
    """Read a moment as in RFC 3339, or a UTC day."""
    text = query.get(name)
    if text is None:
        return None
    try:
        # In a query, a plus sign stands for a space.
        time = datetime.fromisoformat(text.replace(" ", "+"))
        if not _FIRST_YEAR <= time.year < MAXYEAR:  # days before it, and other zones, have a date
            raise ValueError
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    except ValueError as exc:
        hint = "such as 2026-03-01 or 2026-03-01T12:00:00Z"
        raise RequestError.at(name, f"must be a time {hint}, not {describe(text)}") from exc
