"""What Postgres can hold of a text, of JSON, of a record. Pure; used for its twin too.

A decision is never lost because of a strange character in it: what cannot be stored is replaced.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

import orjson

from state.history.facts import GangFacts
from state.log.records import DecisionRecord

_FACTS: Final = [field.name for field in fields(GangFacts)]
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


def to_storable(record: DecisionRecord) -> DecisionRecord:
    """Return the record as Postgres would give it back."""
    return replace(
        record,
        service=to_text(record.service),
        kind=to_text(record.kind),
        subject=to_text(record.subject),
        pod_uid=to_optional_text(record.pod_uid),
        outcome=to_text(record.outcome),
        reason=to_text(record.reason),
        policy_version=to_optional_text(record.policy_version),
        details=orjson.loads(to_json(record.details)),
        inputs=orjson.loads(to_json(record.inputs)),
        documents=(),
        facts=None,
    )


def to_storable_facts(facts: GangFacts) -> GangFacts:
    """Return the facts as Postgres would hold them."""
    return GangFacts(**{name: _to_column(getattr(facts, name)) for name in _FACTS})


def _to_column(value: Any) -> Any:  # noqa: ANN401 - of any field
    match value:
        case str():
            return to_text(value)
        case tuple():
            return tuple(sorted({to_text(item) for item in value}))
        case _:
            return value
