"""Records as bytes, for the spool and the mirror. Pure.

`decode` returns a record as Postgres would return it. A record is a JSON list by position, because
field names would take most of the space. The first element is the version of the layout, so that a
newer release can read the spool of an older one.
"""

import math
import uuid
from datetime import datetime
from typing import Final

import orjson

from state.database.column_values import to_json, to_optional_text, to_text
from state.history.facts import decode_facts, encode_facts
from state.log.records import DecisionRecord, LoggedDocument

_VERSION: Final = 1


def encode(record: DecisionRecord) -> bytes:
    """Return the record as bytes. Raises ValueError if it can never be stored."""
    return orjson.dumps(
        (
            _VERSION,
            record.key,
            record.at,
            to_text(record.service),
            to_text(record.kind),
            to_text(record.subject),
            to_text(record.outcome),
            to_text(record.reason),
            record.latency_seconds,
            to_optional_text(record.pod_uid),
            to_optional_text(record.policy_version),
            orjson.Fragment(to_json(record.details)),
            orjson.Fragment(to_json(record.inputs)),
            record.epoch,
            record.sequence,
            [(to_text(document.kind), to_text(document.content)) for document in record.documents],
            None if record.facts is None else orjson.Fragment(encode_facts(record.facts)),
        )
    )


def decode(payload: bytes) -> DecisionRecord:
    """Return the record. Raises ValueError for bytes of another layout."""
    values = orjson.loads(payload)
    if not isinstance(values, list) or values[:1] != [_VERSION]:
        raise ValueError("the record was written by another version of Cellgate")
    (_, key, at, service, kind, subject, outcome, reason, latency, pod_uid, policy_version, details,
     inputs, epoch, sequence, documents, facts) = values  # fmt: skip
    return DecisionRecord(
        key=uuid.UUID(key),
        at=datetime.fromisoformat(at),
        service=service,
        kind=kind,
        subject=subject,
        outcome=outcome,
        reason=reason,
        latency_seconds=math.nan if latency is None else latency,
        pod_uid=pod_uid,
        policy_version=policy_version,
        details=details,
        inputs=inputs,
        epoch=epoch,
        sequence=sequence,
        documents=tuple(LoggedDocument(kind=one, content=text) for one, text in documents),
        facts=None if facts is None else decode_facts(facts),
    )
