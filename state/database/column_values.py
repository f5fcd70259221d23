"""Texts and JSON in the form that Postgres can hold. Pure; the in-memory twins use it too.

A decision is never lost because of an unusual character: what cannot be stored is replaced.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import orjson

_REPLACEMENT = "\ufffd"


def to_text(value: str) -> str:
    """Replace what a Postgres text cannot hold: NUL, and halves of surrogate pairs."""
    if value.isascii() and "\0" not in value:
        return value
    return value.replace("\0", _REPLACEMENT).encode(errors="replace").decode()


def to_optional_text(value: str | None) -> str | None:
    """Treat a text that may be missing."""
    return None if value is None else to_text(value)


def to_json(details: Mapping[str, Any]) -> str:
    """Format as JSON that a Postgres jsonb can hold. Raises ValueError if it has no end."""
    try:
        text = orjson.dumps(details, default=str).decode()
    except TypeError:  # also for numbers beyond 64 bits, other keys than strings, surrogates
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
