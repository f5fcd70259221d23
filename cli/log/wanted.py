"""Which part of the log the flags ask for, and how its database is opened."""

from argparse import Namespace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from policy.errors import SettingsError
from policy.queues.durations import parse_duration
from state.database.database import PoolSettings, parse_embedded
from state.log.stretches import Wanted

POOL = PoolSettings(connections=2, statement_timeout_seconds=120.0)
"""A day of a large cluster may take longer to find than a service would wait."""


def read_wanted(options: Namespace) -> Wanted:
    """Read `--from`, `--to` and `--subject`; SettingsError if they contradict each other."""
    now = datetime.now(UTC)
    flags = vars(options)
    since = _moment("--from", flags["from"], now) if flags["from"] else Wanted().since
    until = _moment("--to", flags["to"], now) if flags["to"] else now
    if since > until:
        raise SettingsError("--from is later than --to")
    return Wanted(since=since, until=until, subject=flags.get("subject"))


def check_exists(url: str) -> None:
    """Raise SettingsError for an embedded database that would be created by opening it."""
    directory = parse_embedded(url)
    if directory is not None and not Path(directory).is_dir():
        raise SettingsError(f"--database-url: there is no database in {directory}")


def _moment(flag: str, text: str, now: datetime) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        pass
    try:
        return now - timedelta(seconds=parse_duration(text))
    except ValueError as exc:
        raise SettingsError(
            f"{flag} must be a time such as 2026-03-01T12:00:00Z, or a duration before now such "
            f"as 2h or 7d, not {text!r}"
        ) from exc
