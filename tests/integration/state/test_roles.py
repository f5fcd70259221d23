"""Least privilege: what the members of our roles can do, and what they cannot."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from policy.errors import BackendError
from policy.submission import ClassName, NodeName
from state.database.database import Database, open_database
from state.database.migrator import check_schema, migrate
from state.embedded import EmbeddedPostgres
from state.ledger.ledger import Charged
from state.log.archive.reader import Archive
from state.log.archive.transfer import export_log, import_log
from state.log.postgres import PostgresDecisions
from state.log.stretches import Wanted
from state.nodes.postgres import PostgresSeenNodes
from tests.support.state.charges import ALICE, TERM, a_charge, gang_key
from tests.support.state.ledgers import a_patient_ledger
from tests.support.state.records import a_decision
from tests.support.twins.log import MemoryDecisions

_ROLES = ("cellgate_webhook", "cellgate_extender", "cellgate_reader")


@asynccontextmanager
async def _as_member(database: Database, role: str) -> AsyncIterator[asyncpg.Pool]:
    """Connections that log in as a user that is a member of the role only."""
    name = f"member_{urlsplit(database.url).path.removeprefix('/')}"
    await database.pool.execute(f"CREATE ROLE {name} LOGIN IN ROLE {role}")
    host = database.url.partition("@")[2]
    try:
        async with open_database(f"postgresql://{name}@{host}", application_name="t") as opened:
            yield opened.pool
    finally:
        await database.pool.execute(f"DROP ROLE {name}")


async def test_a_webhook_charges_and_reads_and_no_more(database: Database) -> None:
    async with _as_member(database, "cellgate_webhook") as pool:
        ledger = a_patient_ledger(pool)
        assert isinstance(await ledger.charge(a_charge()), Charged)
        assert (await ledger.usage(ALICE)).leaf_cells == 4
        assert len(await ledger.holdings()) == len(await ledger.charges()) == 1
        assert await PostgresSeenNodes(pool).count([]) == ()
        with pytest.raises(BackendError, match="InsufficientPrivilege"):
            await PostgresSeenNodes(pool).observe([], gone=[], term=TERM)
        with pytest.raises(BackendError, match="InsufficientPrivilege"):
            await ledger.release([gang_key("bert")], term=TERM)
        with pytest.raises(BackendError, match="InsufficientPrivilege"):
            await ledger.raise_class(a_charge(), ClassName("test"), is_high=True, term=TERM)
        with pytest.raises(BackendError, match="InsufficientPrivilege"):
            await ledger.note_reclaimed({gang_key("bert"): datetime.now(UTC)}, term=TERM)
        for statement in (
            "UPDATE holdings SET leaf_count = 0",
            "DELETE FROM charges",
            "SELECT ledger_end('{}', 'gone', now())",
            "CREATE TABLE mine (a int)",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await pool.execute(statement)


async def test_an_extender_does_all_that_the_leader_does(database: Database) -> None:
    async with _as_member(database, "cellgate_extender") as pool:
        ledger = a_patient_ledger(pool)
        await ledger.charge(a_charge())
        await ledger.confirm([gang_key("bert")], term=TERM)
        await PostgresSeenNodes(pool).observe([], gone=[NodeName("n1")], term=TERM)
        await PostgresSeenNodes(pool).retain([], term=TERM)
        assert await ledger.expire(term=TERM) == ()
        await ledger.note_reclaimed({gang_key("bert"): datetime.now(UTC)}, term=TERM)
        assert len(await ledger.first_asked([gang_key("bert")])) == 1
        lowered = a_charge("lowered", rises_to=ClassName("test"))
        await ledger.charge(lowered)
        raised = await ledger.raise_class(lowered, ClassName("test"), is_high=True, term=TERM)
        assert isinstance(raised, Charged)
        await ledger.reconcile([a_charge("other")], term=TERM)
        assert len(await ledger.release([gang_key("bert"), gang_key("other")], term=TERM)) == 2
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await pool.execute("DELETE FROM past_charges")


async def test_a_reader_reads(database: Database) -> None:
    async with _as_member(database, "cellgate_reader") as pool:
        ledger = a_patient_ledger(pool)
        assert await ledger.holdings() == ()
        assert await pool.fetch("SELECT * FROM past_charges") == []
        with pytest.raises(BackendError, match="InsufficientPrivilege"):
            await ledger.charge(a_charge())


async def test_a_reader_may_export_and_replay_and_not_import(
    database: Database, tmp_path: Path
) -> None:
    log, path = PostgresDecisions(database.pool), tmp_path / "log"
    await log.insert([a_decision(service="extender", epoch=5, sequence=1)])
    async with _as_member(database, "cellgate_reader") as pool:
        await check_schema(pool)
        done = await export_log(
            PostgresDecisions(pool), path, service="extender", wanted=Wanted(), on_progress=_quiet
        )
        assert done.rows == 1
        with pytest.raises(BackendError, match="InsufficientPrivilege"):
            await import_log(PostgresDecisions(pool), Archive(path), on_progress=_quiet)


async def test_an_extender_may_import(database: Database, tmp_path: Path) -> None:
    other, path = MemoryDecisions(), tmp_path / "log"
    await other.insert([a_decision(service="extender", epoch=5, sequence=1)])
    await export_log(other, path, service="extender", wanted=Wanted(), on_progress=_quiet)
    async with _as_member(database, "cellgate_extender") as pool:
        done = await import_log(PostgresDecisions(pool), Archive(path), on_progress=_quiet)
    assert (done.rows, done.new) == (1, 1)


def _quiet(_what: str, _part: float | None) -> None:
    pass


async def test_a_table_of_the_caller_is_not_taken_for_ours(database: Database) -> None:
    async with _as_member(database, "cellgate_webhook") as pool, pool.acquire() as connection:
        await connection.execute("CREATE TEMP TABLE charges (LIKE charges)")
        await connection.execute(
            "SELECT ledger_charge($1::jsonb, interval '1 s', NULL)",
            '[{"decision": "00000000-0000-0000-0000-000000000001", "namespace": "n", "gang": "g",'
            ' "user_name": "u", "group_name": "", "vc": "v", "class": "c", "is_high": false,'
            ' "leaf_type": "", "leaf_count": 3, "limits": []}]',
        )
    assert await database.pool.fetchval("SELECT count(*) FROM charges") == 1


async def test_without_the_right_to_create_roles_it_works_and_says_so(
    embedded_directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with EmbeddedPostgres(embedded_directory) as server:
        await _remove_roles(server.url)
        owner = urlsplit(server.url)._replace(path="/plain").geturl()
        owner = owner.replace("//cellgate@", "//plain@")
        async with open_database(owner, application_name="tests") as database:
            with caplog.at_level(logging.WARNING):
                await migrate(database.pool)
            notices = [getattr(record, "notice", "") for record in caplog.records]
            assert sum("may not create roles" in notice for notice in notices) == len(_ROLES)
            assert isinstance(await a_patient_ledger(database.pool).charge(a_charge()), Charged)


async def _remove_roles(url: str) -> None:
    migrated = await asyncpg.connect(urlsplit(url)._replace(path="/migrated").geturl())
    for role in _ROLES:
        await migrated.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
    await migrated.execute("CREATE ROLE plain LOGIN")
    await migrated.execute("CREATE DATABASE plain OWNER plain")
    await migrated.close()
