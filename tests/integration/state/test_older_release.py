"""A process of the release before this one runs beside us while replicas are replaced.

What it sends is written down here as it was, not read from our queries.
"""

from datetime import UTC, datetime, timedelta

from state.database.database import Database, open_database
from state.database.migrator import load_migrations, migrate
from state.history.runs import PostgresHistory
from state.ledger.ledger import Charged
from state.log.postgres import PostgresDecisions
from state.log.records import LoggedDocument
from tests.support.state.charges import ALICE, TERM, a_charge
from tests.support.state.ledgers import a_patient_ledger
from tests.support.state.records import a_decision

_NOW = datetime(2026, 3, 1, tzinfo=UTC)
_FENCE = """
    INSERT INTO log_epochs AS known (service, epoch) SELECT $1, $2::bigint
    ON CONFLICT (service) DO UPDATE SET epoch = excluded.epoch
    WHERE known.epoch <= excluded.epoch
    RETURNING epoch
"""
_DOCUMENT = """
    INSERT INTO documents (hash, kind, content, first_seen_at)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[])
    ON CONFLICT (hash) DO NOTHING
"""
_CHARGE = "SELECT ledger_charge($1::jsonb, interval '10 s', NULL)"
_ASKED = """[{"decision": "00000000-0000-0000-0000-000000000001", "namespace": "n", "gang": "g",
    "user_name": "alice", "group_name": "", "vc": "v", "class": "c", "is_high": false,
    "leaf_type": "", "leaf_count": 3, "limits": []}]"""


_RUN = """
    INSERT INTO gang_history (run, gang, user_name, leaf_count, asked_at, started_at, ended_at)
    VALUES ('r', 'n/g', 'alice', 3, $1, $1, $1::timestamptz + interval '2 hours')
"""
_FIRST_RELEASE = 7


async def test_what_it_left_is_carried_over_while_it_still_runs(empty_database_url: str) -> None:
    async with (
        open_database(empty_database_url, application_name="old") as old,
        open_database(empty_database_url, application_name="new") as new,
    ):
        await migrate(old.pool, migrations=load_migrations()[:_FIRST_RELEASE])
        assert '"charged"' in await old.pool.fetchval(_CHARGE, _ASKED)
        await old.pool.execute(_FENCE, "extender", 5)
        await old.pool.execute(_RUN, _NOW)
        assert await migrate(new.pool)
        # The same statement, on a connection that has prepared it for the former function.
        assert '"charged"' in await old.pool.fetchval(_CHARGE, _ASKED)
        assert await old.pool.fetchval(_FENCE, "extender", 5) == 5
        ledger, store = a_patient_ledger(new.pool), PostgresDecisions(new.pool)
        assert isinstance(await ledger.charge(a_charge()), Charged)
        assert (await ledger.usage(ALICE)).leaf_cells == 7
        gangs = [live.charge.gang for live in await ledger.charges()]
        assert await ledger.release(gangs, term=TERM) == frozenset(gangs)
        late = a_decision(service="extender", epoch=4, at=datetime.now(UTC) + timedelta(days=1))
        assert await store.insert([late]) == [late]
        history = PostgresHistory(new.pool)
        [hours] = await history.hours_between(_NOW, _NOW + timedelta(days=1))
        assert hours.leaf_cell_hours == 6.0


async def test_an_older_leader_is_told_that_a_new_term_began(database: Database) -> None:
    store = PostgresDecisions(database.pool)
    assert await database.pool.fetchval(_FENCE, "extender", 5) == 5
    await store.insert([a_decision(service="extender", epoch=6)])
    assert await database.pool.fetchval(_FENCE, "extender", 5) is None
    assert await database.pool.fetchval(_FENCE, "extender", 7) == 7


async def test_a_document_that_it_wrote_is_known(database: Database) -> None:
    document = LoggedDocument(kind="rules", content="rules: []")
    values = [document.hash], [document.kind], [document.content], [_NOW]
    await database.pool.execute(_DOCUMENT, *values)
    store = PostgresDecisions(database.pool)
    await store.insert([a_decision(documents=(document,))])
    assert await store.document(document.hash) == document


async def test_what_it_charges_counts(database: Database) -> None:
    text = await database.pool.fetchval(_CHARGE, _ASKED)
    assert '"charged"' in text
    assert (await a_patient_ledger(database.pool).usage(ALICE)).leaf_cells == 3
