"""Flags that several commands share."""

from typing import Final

from cli.options import Options

URL_FORMS: Final = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE or embedded:DIR"
_LEVELS: Final = ("debug", "info", "warning", "error")


def add_general(options: Options, *, log_level: str) -> None:
    """Add the flags of all commands."""
    options.add_choice("--log-level LEVEL", "", default=log_level, choices=_LEVELS)
    options.add_help()


def add_database_url(options: Options) -> None:
    """Add the database of a command that cannot do without one."""
    options.add("--database-url URL", f"{URL_FORMS} (required)", is_required=True)


def add_time(options: Options) -> None:
    """Add the time of a stretch of the log."""
    about = "Begin at this time (2026-03-01T12:00:00Z, UTC without a zone), or so long ago (2h, 7d)"
    options.add("--from TIME", about)
    options.add("--to TIME", "End at this time, or so long ago (default now)")
