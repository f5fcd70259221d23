"""A service needs no more rights in the log than to add to it."""

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from state.database.database import Database, open_database
from state.database.maintenance import LogMaintenance
from state.database.retention import RetentionSettings
from state.history.facts import GangFacts
from state.log.postgres import PostgresDecisions
from state.log.records import LoggedDocument
from tests.support.state.records import a_decision

_NOW = datetime(2026, 3, 10, tzinfo=UTC)


@pytest.fixture(params=["cellgate_webhook", "cellgate_extender"])
async def limited(
    request: pytest.FixtureRequest, database: Database, database_url: str
) -> AsyncIterator[Database]:
    """The database, opened by a member of one of the services' roles."""
    login = f"login_{os.getpid()}"
    await database.pool.execute(f"CREATE ROLE {login} LOGIN IN ROLE {request.param}")
    try:
        url = database_url.replace("cellgate@", f"{login}@")
        async with open_database(url, application_name="tests") as limited:
            yield limited
    finally:
        await database.pool.execute(f"DROP ROLE {login}")


async def test_a_service_writes_and_maintains_the_log(limited: Database) -> None:
    settings = RetentionSettings(log_days=1, ahead_days=1)
    maintenance, store = LogMaintenance(limited.pool, settings), PostgresDecisions(limited.pool)
    await maintenance.maintain(_NOW)
    document = LoggedDocument(kind="rules", content="rules: []")
    facts = GangFacts(run="r1", gang="a/b")
    records = [
        a_decision(at=_NOW, epoch=epoch, documents=(document,), facts=facts) for epoch in (1, 1, 2)
    ]
    await store.insert(records)
    await store.insert(records[2:])
    assert len(await store.recent(10)) == 3
    await maintenance.maintain(_NOW + timedelta(days=5))
    assert await store.recent(10) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE decisions SET reason = 'another'",
        "DELETE FROM decisions",
        "UPDATE documents SET content = 'another'",
        "DELETE FROM gang_history",
        "DELETE FROM log_terms",
        "UPDATE documents SET first_seen_at = now()",
        "DROP TABLE decisions_default",
        "SELECT grant_rights()",
    ],
)
async def test_a_service_cannot_change_what_was_written(limited: Database, statement: str) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await limited.pool.execute(statement)


async def test_a_login_without_the_right_cannot_drop_a_day(
    database: Database, database_url: str
) -> None:
    login = f"nobody_{os.getpid()}"
    await database.pool.execute(f"CREATE ROLE {login} LOGIN")
    try:
        connection = await asyncpg.connect(database_url.replace("cellgate@", f"{login}@"))
        try:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute("SELECT drop_decision_day('2030-01-01')")
        finally:
            await connection.close()
    finally:
        await database.pool.execute(f"DROP ROLE {login}")
