"""Log records in the form that Postgres gives back. Pure; the in-memory twin uses it too."""

from dataclasses import replace

import orjson

from state.database.column_values import to_json, to_optional_text, to_text
from state.log.records import DecisionRecord


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
