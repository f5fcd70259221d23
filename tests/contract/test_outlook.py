"""The outlook, on memory, on our embedded Postgres and on a stock server."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from policy.errors import ConflictError
from state.outlook.outlook import Outlook, OutlookEntry, OutlookStore
from state.outlook.postgres import PostgresOutlook
from tests.support.state.charges import TERM
from tests.support.twins.outlook import MemoryOutlook

START = datetime(2026, 11, 18, 9, 0, tzinfo=UTC)
KNOWN = OutlookEntry(
    vc="lab",
    leaf_type="A100",
    class_name="prod",
    leaf_cells=8,
    level="batch",
    place=7,
    low=1e9,
    high=2e9,
)
UNKNOWN = replace(KNOWN, leaf_cells=16, low=0.0, high=0.0, unknown="no history for ü")
OUTLOOK = Outlook(computed_at=START, entries=[KNOWN, UNKNOWN])


@pytest.fixture(params=["memory", "embedded", "stock"])
def store(request: pytest.FixtureRequest) -> OutlookStore:
    if request.param == "memory":
        return MemoryOutlook()
    name = "database" if request.param == "embedded" else "stock_database"
    return PostgresOutlook(request.getfixturevalue(name).pool)


async def test_webhooks_read_what_the_leader_wrote_last(store: OutlookStore) -> None:
    assert await store.load() is None
    await store.save(OUTLOOK, term=TERM)
    assert await store.load() == OUTLOOK
    later = Outlook(computed_at=START + timedelta(minutes=1), entries=[])
    await store.save(later, term=TERM)
    assert await store.load() == later


async def test_a_leader_of_an_earlier_term_writes_no_outlook(store: OutlookStore) -> None:
    await store.save(OUTLOOK, term=replace(TERM, epoch=TERM.epoch + 1))
    with pytest.raises(ConflictError):
        await store.save(Outlook(computed_at=START, entries=[]), term=TERM)
    assert await store.load() == OUTLOOK
