"""Records as bytes: a decoded record equals the row that Postgres would return."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.database.column_values import to_json, to_optional_text, to_text
from state.history.facts import GangFacts, to_storable_facts
from state.log import codec
from state.log.records import DecisionRecord, LoggedDocument, new_key
from tests.support.state.records import a_decision

_TEXT = st.text(st.characters(codec=None), max_size=5)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=5,
)
_FACTS = st.builds(
    GangFacts,
    run=_TEXT,
    gang=_TEXT,
    leaf_count=st.none() | st.integers(0, 99),
    asked_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    nodes=st.lists(_TEXT, max_size=3).map(tuple),
)
_RECORDS = st.builds(
    DecisionRecord,
    at=st.datetimes(timezones=st.just(UTC)),
    service=_TEXT,
    kind=_TEXT,
    subject=_TEXT,
    outcome=_TEXT,
    reason=_TEXT,
    latency_seconds=st.floats(0, 10),
    pod_uid=st.none() | _TEXT,
    details=st.dictionaries(_TEXT, _JSON, max_size=3),
    inputs=st.dictionaries(_TEXT, _JSON, max_size=3),
    epoch=st.none() | st.integers(0, 2**40),
    sequence=st.none() | st.integers(0, 2**40),
    facts=st.none() | _FACTS,
    key=st.uuids(),
)


@given(record=_RECORDS)
def test_a_record_comes_back_as_it_would_be_stored(record: DecisionRecord) -> None:
    found = codec.decode(codec.encode(record))
    assert found == _as_stored(record)


def _as_stored(record: DecisionRecord) -> DecisionRecord:
    return replace(
        record,
        service=to_text(record.service),
        kind=to_text(record.kind),
        subject=to_text(record.subject),
        pod_uid=to_optional_text(record.pod_uid),
        outcome=to_text(record.outcome),
        reason=to_text(record.reason),
        details=orjson.loads(to_json(record.details)),
        inputs=orjson.loads(to_json(record.inputs)),
        facts=to_storable_facts(record.facts) if record.facts else None,
    )


def test_documents_travel_with_the_record() -> None:
    document = LoggedDocument(kind="rules", content="rules: []")
    record = a_decision(documents=(document,))
    assert codec.decode(codec.encode(record)) == record


def test_a_record_that_can_never_be_stored_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    with pytest.raises(ValueError, match="contain themselves"):
        codec.encode(a_decision(details=endless))


@pytest.mark.parametrize("payload", [b"", b"{}", b"[2]", b"7", orjson.dumps([1, "short"])])
def test_bytes_of_another_layout_are_refused(payload: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any, and no other error
        codec.decode(payload)


def test_keys_are_unique_and_in_the_order_of_making() -> None:
    keys = [new_key() for _ in range(10_000)]
    assert keys == sorted(set(keys))
    assert {key.version for key in keys} == {7}
    made = keys[0].int >> 80
    assert abs(made / 1000 - datetime.now(UTC).timestamp()) < 60
