"""The decision log, on Postgres and on its twin in memory."""

from datetime import datetime
from typing import Any

import pytest

from state.log.log import DecisionLog, DecisionStore, LogSettings
from state.log.positions import Position
from state.log.postgres import PostgresDecisions
from tests.support.state.records import a_decision
from tests.support.twins.log import MemoryDecisions


@pytest.fixture(params=["memory", "database", "stock_database"])
def store(request: pytest.FixtureRequest) -> DecisionStore:
    if request.param == "memory":
        return MemoryDecisions()
    return PostgresDecisions(request.getfixturevalue(request.param).pool)


@pytest.fixture
def log(store: DecisionStore) -> DecisionLog:
    return DecisionLog(store)


async def test_a_record_comes_back_as_it_was(log: DecisionLog) -> None:
    record = a_decision(
        pod_uid="8a7b",
        policy_version="rules@17",
        details={"nodes": ["n1", "n2"], "score": 0.5, "nested": {"ünï": None}},
    )
    log.append(record)
    await log.flush()
    assert await log.recent(10) == [record]


async def test_newest_records_come_first_and_no_more_than_asked_for(log: DecisionLog) -> None:
    records = [a_decision(f"team-a/gang-{number}") for number in range(5)]
    for record in records:
        log.append(record)
    await log.flush()
    assert await log.recent(2) == [records[4], records[3]]


async def test_records_are_read_page_by_page(log: DecisionLog) -> None:
    at = a_decision().at
    records = [a_decision("a/x" if number % 2 else "a/y", at=at) for number in range(6)]
    for record in records:
        log.append(record)
    await log.flush()
    first = await log.recent(4)
    before = Position.parse(str(Position.of(first[-1])))
    log.append(a_decision("a/x"))  # what is written meanwhile moves nothing
    await log.flush()
    assert [*first, *await log.recent(4, before=before)] == records[::-1]
    assert await log.recent(4, subject="a/x", before=before) == [records[1]]


async def test_records_can_be_asked_for_by_subject(log: DecisionLog) -> None:
    first, other, last = a_decision("a/x"), a_decision("a/y"), a_decision("a/x")
    for record in (first, other, last):
        log.append(record)
    await log.flush()
    assert await log.recent(10, subject="a/x") == [last, first]
    assert await log.recent(10, subject="a/unknown") == []


async def test_a_record_is_seen_once_it_is_written(log: DecisionLog) -> None:
    log.append(a_decision())
    assert await log.recent(10) == []
    assert (log.pending, log.written, log.dropped) == (1, 0, 0)
    await log.flush()
    assert len(await log.recent(10)) == 1
    assert (log.pending, log.written, log.dropped) == (0, 1, 0)


async def test_several_batches_are_written_in_order(store: DecisionStore) -> None:
    log = DecisionLog(store, LogSettings(batch_size=3))
    records = [a_decision(f"team-a/gang-{number}") for number in range(10)]
    for record in records:
        log.append(record)
    await log.flush()
    assert await log.recent(100) == records[::-1]


async def test_a_record_that_is_written_again_is_stored_once(store: DecisionStore) -> None:
    first, second = a_decision("a/x"), a_decision("a/y")
    await store.insert([first])
    await store.insert([first, second, second])
    assert await store.recent(10) == [second, first]


async def test_records_beyond_the_capacity_are_dropped_and_counted(store: DecisionStore) -> None:
    log = DecisionLog(store, LogSettings(capacity=2))
    records = [a_decision(f"team-a/gang-{number}") for number in range(5)]
    for record in records:
        log.append(record)
    assert (log.pending, log.dropped) == (2, 3)
    await log.flush()
    assert await log.recent(10) == [records[1], records[0]]
    assert (log.pending, log.written, log.dropped) == (0, 2, 3)


async def test_what_cannot_be_stored_in_a_text_is_replaced(log: DecisionLog) -> None:
    log.append(a_decision("a\0b/\ud800", reason="ü\0", pod_uid="\udfff"))
    await log.flush()
    [record] = await log.recent(10)
    assert (record.subject, record.reason, record.pod_uid) == ("a\ufffdb/?", "ü\ufffd", "?")


@pytest.mark.parametrize(
    ("details", "stored"),
    [
        ({"text": "a\0b\\u0000"}, {"text": "a\ufffdb\\u0000"}),
        ({"text": "\ud800"}, {"text": "?"}),
        ({"number": 2**70}, {"number": 2**70}),
        ({"number": float("inf")}, {"number": None}),
        ({1: "one"}, {"1": "one"}),
        ({"when": datetime(2026, 3, 1)}, {"when": "2026-03-01T00:00:00"}),
        ({"odd": {"a"}}, {"odd": "{'a'}"}),
        ({"pair": (1, 2)}, {"pair": [1, 2]}),
    ],
    ids=["nul", "surrogate", "big", "infinite", "key", "time", "set", "tuple"],
)
async def test_details_that_are_no_json_are_stored_as_near_as_can_be(
    log: DecisionLog, details: Any, stored: Any
) -> None:
    log.append(a_decision(details=details))
    await log.flush()
    [record] = await log.recent(10)
    assert record.details == stored
    assert log.dropped == 0


async def test_a_record_that_can_never_be_stored_costs_no_other(log: DecisionLog) -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    good = [a_decision(f"team-a/gang-{number}") for number in range(6)]
    for record in (*good[:4], a_decision(details=endless), *good[4:]):
        log.append(record)
    await log.flush()
    assert await log.recent(10) == good[::-1]
    assert (log.pending, log.written, log.dropped) == (0, 6, 1)
