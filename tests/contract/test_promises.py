"""The promise ledger, on memory, on our embedded Postgres and on a stock server."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from policy.errors import ConflictError
from policy.submission import GangKey
from state.promises.postgres import PostgresPromises
from state.promises.promises import PromiseRow, PromiseStore
from tests.support.state.charges import TERM
from tests.support.twins.promises import MemoryPromises

START = datetime(2026, 11, 18, 9, 0, tzinfo=UTC)
ROW = PromiseRow(
    gang=GangKey("lab", "bert", "uid-1"),
    made_at=START,
    ended_at=None,
    body={"promised": 5.5, "slips": [], "name": "ü"},
)


@pytest.fixture(params=["memory", "embedded", "stock"])
def store(request: pytest.FixtureRequest) -> PromiseStore:
    if request.param == "memory":
        return MemoryPromises()
    name = "database" if request.param == "embedded" else "stock_database"
    return PostgresPromises(request.getfixturevalue(name).pool, clock=lambda: START)


async def test_the_next_leader_reads_what_was_promised_and_each_slip(store: PromiseStore) -> None:
    await store.save([ROW], term=TERM)
    slipped = replace(ROW, body={**ROW.body, "slips": [{"cause": "overrun"}]})
    other = replace(ROW, gang=GangKey("lab", "gpt"), made_at=START + timedelta(hours=1))
    await store.save([slipped, other], term=TERM)
    await store.save([slipped], term=TERM)  # an answer was lost
    assert await store.load(ended_since=START) == [slipped, other]


async def test_a_promise_that_has_ended_stays_so(store: PromiseStore) -> None:
    ended = replace(ROW, ended_at=START + timedelta(hours=2))
    await store.save([ended], term=TERM)
    await store.save([ROW], term=TERM)
    assert await store.load(ended_since=START) == [ended]
    assert await store.load(ended_since=START + timedelta(hours=3)) == []


async def test_a_leader_of_an_earlier_term_writes_nothing(store: PromiseStore) -> None:
    await store.save([ROW], term=replace(TERM, epoch=TERM.epoch + 1))
    with pytest.raises(ConflictError):
        await store.save([replace(ROW, body={})], term=TERM)
    assert await store.load(ended_since=START) == [ROW]
