"""Text and JSON values in a form that Postgres can store. Pure.

Characters that Postgres cannot store are replaced, so that no decision is lost because of them.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import orjson

_REPLACEMENT = "\ufffd"


def to_text(value: str) -> str:
    """Replace what a Postgres text cannot contain: NUL and lone surrogates."""
    if value.isascii() and "\0" not in value:
        return value
    return value.replace("\0", _REPLACEMENT).encode(errors="replace").decode()


def to_optional_text(value: str | None) -> str | None:
    """Convert a text that may be missing."""
    return None if value is None else to_text(value)


def to_json(details: Mapping[str, Any]) -> str:
    """Format as JSON that a Postgres jsonb can contain. Raises ValueError for a cycle."""
    try:
        text = orjson.dumps(details, default=str).decode()
    except TypeError:  # also for integers beyond 64 bits, keys that are no strings, surrogates
        return _to_clean_json(details)
    return _to_clean_json(details) if r"\u0000" in text else text


def _to_clean_json(details: Mapping[str, Any]) -> str:
    try:
        return json.dumps(_clean(details))
    except RecursionError as error:
        raise ValueError("the details contain themselves") from error


def _clean(value: object) -> object:
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {to_text(str(key)): _clean(item) for key, item in value.items()}
        case list() | tuple():
            return [_clean(item) for item in value]
        case _:
            return to_text(str(value))
