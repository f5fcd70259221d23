"""What is past is forgotten when its time has come, by both clocks, and not before."""

from datetime import UTC, datetime, timedelta

import pytest

from state.database.database import Database
from state.database.maintenance import LogMaintenance
from state.database.retention import RetentionSettings
from state.history.facts import GangFacts
from state.history.runs import PostgresHistory, RunFilter
from state.log.postgres import PostgresDecisions
from state.log.records import LoggedDocument
from tests.support.clocks import FrozenTime
from tests.support.state.charges import TERM, a_charge, gang_key
from tests.support.state.ledgers import a_patient_ledger
from tests.support.state.records import a_decision

_TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_SETTINGS = RetentionSettings(log_days=5, history_days=10, totals_days=20)


def _ran(run: str, *, days_ago: float, hours: float | None = 1.0) -> GangFacts:
    started_at = _TODAY - days_ago * _DAY
    return GangFacts(
        run=run,
        gang="a/b",
        user_name="alice",
        leaf_count=1,
        asked_at=started_at,
        started_at=started_at,
        ended_at=None if hours is None else started_at + hours * _HOUR,
    )


async def _maintain(database: Database, *, now: datetime = _TODAY + 12 * _HOUR) -> None:
    await LogMaintenance(database.pool, _SETTINGS).maintain(now)


async def test_old_runs_are_forgotten_and_their_hours_are_not(database: Database) -> None:
    waiting = GangFacts(run="waiting", gang="a/b", asked_at=_TODAY - _DAY)
    refused = GangFacts(run="refused", gang="a/b", asked_at=_TODAY - 11 * _DAY, outcome="refused")
    facts = [
        _ran("old", days_ago=10.5),
        _ran("ended since", days_ago=10.5, hours=24),
        _ran("goes on", days_ago=30, hours=None),
        _ran("new", days_ago=10),
        waiting,
        refused,
    ]
    await PostgresDecisions(database.pool).insert([a_decision(facts=fact) for fact in facts])
    history = PostgresHistory(database.pool)
    day = (_TODAY - 11 * _DAY, _TODAY - 10 * _DAY)
    before = await history.hours_between(*day)
    await _maintain(database)
    kept = {run.facts.run for run in await history.find(RunFilter(gang="a/b"), 10)}
    assert kept == {"ended since", "goes on", "new", "waiting"}
    assert before == await history.hours_between(*day)
    assert before[0].leaf_cell_hours == pytest.approx(1 + 12 + 24)


async def test_sums_are_forgotten_later(database: Database) -> None:
    clock = FrozenTime(_TODAY - 20.5 * _DAY)
    ledger = a_patient_ledger(database.pool, clock=clock)
    await ledger.charge(a_charge())
    await ledger.confirm([gang_key("bert")], term=TERM)
    clock.advance(hours=24)
    await ledger.release([gang_key("bert")], term=TERM)
    facts = _ran("r1", days_ago=20.5, hours=24)
    await PostgresDecisions(database.pool).insert([a_decision(facts=facts)])
    await _maintain(database)
    first_kept = (_TODAY - 20 * _DAY).date()
    assert [use.day for use in await ledger.days(first_kept - 9 * _DAY, first_kept)] == [first_kept]
    days = await database.pool.fetch("SELECT day FROM gang_days")
    assert [row["day"] for row in days] == [first_kept]
    assert await database.pool.fetchval("SELECT count(*) FROM past_charges") == 0


async def test_past_charges_are_forgotten_when_they_ended_long_ago(database: Database) -> None:
    clock = FrozenTime(_TODAY - 12 * _DAY)
    ledger = a_patient_ledger(database.pool, clock=clock)
    for name, days in (("old", 1.9), ("young", 0.2), ("live", 0)):
        await ledger.charge(a_charge(name))
        await ledger.confirm([gang_key(name)], term=TERM)
        clock.advance(days=days)
        if days:
            await ledger.release([gang_key(name)], term=TERM)
    await _maintain(database)
    rows = await database.pool.fetch("SELECT gang FROM past_charges")
    assert [row["gang"] for row in rows] == ["young"]
    assert [live.charge.gang.name for live in await ledger.charges()] == ["live"]


async def test_a_document_is_kept_as_long_as_a_row_may_speak_of_it(database: Database) -> None:
    store = PostgresDecisions(database.pool)
    old, used = (LoggedDocument(kind="rules", content=text) for text in ("old", "used"))
    for document, days_ago in ((old, 30), (used, 30), (used, 9), (used, 20)):
        row = a_decision(at=_TODAY - days_ago * _DAY, documents=(document,))
        await store.insert([row])
    await _maintain(database)
    assert await store.document(old.hash) is None
    assert await store.document(used.hash) == used


async def test_rows_that_had_no_day_are_forgotten_too(database: Database) -> None:
    store = PostgresDecisions(database.pool)
    await store.insert([a_decision(at=_TODAY - days * _DAY) for days in (6, 400)])
    kept = a_decision(at=_TODAY + 4000 * _DAY)
    await store.insert([kept])
    await _maintain(database)
    assert await store.recent(10) == [kept]


@pytest.mark.parametrize("wrong", [400 * _DAY, 40_000 * _DAY], ids=["a year ahead", "a century"])
async def test_a_service_with_a_wrong_clock_forgets_nothing(
    database: Database, wrong: timedelta
) -> None:
    store = PostgresDecisions(database.pool)
    await _maintain(database)
    document = LoggedDocument(kind="rules", content="rules: []")
    row = a_decision(at=_TODAY, facts=_ran("r1", days_ago=1), documents=(document,))
    await store.insert([row])
    await _maintain(database, now=_TODAY + wrong)
    assert len(await store.recent(10)) == 1
    assert await store.document(document.hash) == document
    assert len(await PostgresHistory(database.pool).find(RunFilter(gang="a/b"), 10)) == 1
