"""Words of the commands that read the log: numbers of things, moments, lines of a given width."""

import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

_WIDTH: Final = 100


def wrap(text: str, indent: int) -> Iterator[str]:
    """Break a text into lines."""
    space = " " * indent
    yield from textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=space,
        subsequent_indent=f"{space}  ",
        break_on_hyphens=False,
    )


def counted(number: int, what: str) -> str:
    """Write a number of things: `1 row`, `2,000 rows`."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def time_text(moment: datetime) -> str:
    """Write a moment, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
