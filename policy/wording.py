"""Helpers for texts that people read: quoting, cutting, paths, plurals, times.

Every message is byte-stable and safe to print: text that others wrote (a user's name, a note, a
value in a document) is quoted or cleaned, and cut, before it enters a sentence.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

QUOTE_CHARS: Final = 60
_NAME_CHARS: Final = 80
_SIMPLE_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def plain(text: str, *, limit: int) -> str:
    """Make a foreign text printable on one line, at most `limit` characters long."""
    # Cut first, with some reserve: cleaning megabytes only to cut them would waste time.
    words = " ".join(text[: limit * 2].split())
    is_clean = words.isprintable()
    clean = words if is_clean else "".join(c if c.isprintable() else "?" for c in words)
    return clean if len(clean) <= limit and len(text) <= limit * 2 else clean[: limit - 1] + "…"


def moment(time: datetime | float) -> str:
    """Show a time in the one form of the API, Events and sentences: in UTC, to the second."""
    if not isinstance(time, datetime):
        time = datetime.fromtimestamp(time, UTC)
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def name(text: str) -> str:
    """Show a name without quotes, on one line and cut."""
    return plain(text, limit=_NAME_CHARS)


def quote(text: str) -> str:
    """Show a foreign text in double quotes, escaped and cut."""
    shown = text if len(text) <= QUOTE_CHARS else text[: QUOTE_CHARS - 1] + "…"
    if shown.isprintable() and '"' not in shown and "\\" not in shown:
        return f'"{shown}"'
    return f'"{"".join(_escape(char) for char in shown)}"'


def _escape(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")


def describe(value: object) -> str:
    """Show a value of unknown type in a message: short, on one line, as YAML and JSON write it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if abs(value) < 2**63 else "a number of more than 63 bits"
        case float():
            return str(value)
        case str():
            return quote(value)
        case list() | tuple():
            return "a list"
        case _:
            return "a mapping"


def join_path(parts: Iterable[str | int]) -> str:
    """Write the path to a value: `rules[2].occupied`."""
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _SIMPLE_KEY.fullmatch(part):
            path += f".{part}" if path else part
        else:
            path += f"[{quote(part)}]"
    return path


def listing(words: Sequence[str]) -> str:
    """Write `a, b, c`; the caller has put them in a defined order."""
    return ", ".join(words)


def count_of(number: int, noun: str) -> str:
    """Write `1 leaf cell`, `2 leaf cells`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def are(number: int) -> str:
    """Write `is` for 1, `are` for any other number."""
    return "is" if number == 1 else "are"
