"""Migrations on a real database: once, in order, whole, from many replicas at once."""

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest

from policy.errors import BackendError, SettingsError
from state.database.database import Database, open_database
from state.database.migrator import Stage, load_migrations, migrate
from tests.support.state.migrations import a_migration

CREATE = a_migration("0001_pre_create", "CREATE TABLE t (a int); INSERT INTO t VALUES (1);")
EXTEND = a_migration("0002_pre_extend", "ALTER TABLE t ADD COLUMN b int; INSERT INTO t VALUES (2)")
SHRINK = a_migration("0002_post_shrink", "ALTER TABLE t DROP COLUMN a")
BROKEN = a_migration("0003_pre_broken", "CREATE TABLE u (a int); SELECT 1 / 0")


@pytest.fixture
async def empty(empty_database_url: str) -> AsyncIterator[Database]:
    async with open_database(empty_database_url, application_name="tests") as database:
        yield database


async def _applied(database: Database) -> list[str]:
    rows = await database.pool.fetch("SELECT name FROM schema_migrations ORDER BY applied_at")
    return [row["name"] for row in rows]


async def test_our_migrations_are_applied_once(empty: Database) -> None:
    names = [migration.name for migration in load_migrations()]
    assert await migrate(empty.pool) == names
    assert await migrate(empty.pool) == []
    assert await _applied(empty) == names
    assert await empty.pool.fetchval("SELECT count(*) FROM decisions") == 0


async def test_replicas_that_migrate_at_once_take_turns(empty_database_url: str) -> None:
    async def replica() -> list[str]:
        async with open_database(empty_database_url, application_name="tests") as database:
            return await migrate(database.pool, migrations=[CREATE, EXTEND])

    applied = await asyncio.gather(*(replica() for _ in range(6)))
    assert sorted(itertools.chain(*applied)) == [CREATE.name, EXTEND.name]
    async with open_database(empty_database_url, application_name="tests") as database:
        assert await database.pool.fetchval("SELECT count(*) FROM t") == 2


async def test_an_edited_migration_is_refused(empty: Database) -> None:
    await migrate(empty.pool, migrations=[CREATE])
    edited = a_migration(CREATE.name, "CREATE TABLE t (a bigint)")
    with pytest.raises(SettingsError, match="0001_pre_create differs from the one"):
        await migrate(empty.pool, migrations=[edited, EXTEND])
    assert await _applied(empty) == [CREATE.name]


async def test_a_migration_that_fails_leaves_nothing_and_keeps_those_before(
    empty: Database,
) -> None:
    with pytest.raises(BackendError, match="migrating the schema: DivisionByZeroError"):
        await migrate(empty.pool, migrations=[CREATE, BROKEN])
    assert await _applied(empty) == [CREATE.name]
    assert await empty.pool.fetchval("SELECT to_regclass('u')") is None


async def test_post_migrations_are_applied_when_asked_for(empty: Database) -> None:
    migrations = [CREATE, EXTEND, SHRINK]
    assert await migrate(empty.pool, until=Stage.PRE, migrations=migrations) == [
        CREATE.name,
        EXTEND.name,
    ]
    assert await migrate(empty.pool, migrations=migrations) == [SHRINK.name]


async def test_older_code_starts_on_a_newer_schema(empty: Database) -> None:
    await migrate(empty.pool, migrations=[CREATE, EXTEND])
    assert await migrate(empty.pool, migrations=[CREATE]) == []


async def test_a_user_without_the_right_is_told_what_to_do(
    empty: Database, empty_database_url: str
) -> None:
    limited = empty_database_url.replace("cellgate@", "limited@")
    await empty.pool.execute("CREATE ROLE limited LOGIN")
    try:
        async with open_database(limited, application_name="tests") as database:
            with pytest.raises(SettingsError, match="run `cellgate migrate` as the owner"):
                await migrate(database.pool)
    finally:
        await empty.pool.execute("DROP ROLE limited")
