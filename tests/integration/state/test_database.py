"""Opening a database: what is set, and what is told when it cannot be opened."""

import asyncio
import os
import signal
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from policy.errors import BackendError, SettingsError
from state.database.database import Database, PoolSettings, backend_errors, open_database
from tests.support.state.postgres import Postgres

_STARTED = "SELECT pg_postmaster_start_time()"
_QUICK = PoolSettings(open_timeout_seconds=0.3)


@asynccontextmanager
async def _server_that_answers(code: str, message: str) -> AsyncIterator[str]:
    """A server that refuses every connection with one error; yields its URL."""
    fields = f"SFATAL\0VFATAL\0C{code}\0M{message}\0\0".encode()
    refusal = b"E" + struct.pack("!I", len(fields) + 4) + fields

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)  # the client asks for TLS first
        writer.write(b"N")
        await reader.read(1000)
        writer.write(refusal)
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        yield f"postgresql://me:s3cret@127.0.0.1:{port}/cellgate"


async def _error_of(url: str) -> str:
    with pytest.raises(SettingsError) as caught:
        async with open_database(url, application_name="tests", settings=_QUICK):
            pass
    message = str(caught.value)
    assert "s3cret" not in message
    assert "\n" not in message
    return message


async def test_every_connection_has_a_name_and_limits(database_url: str) -> None:
    settings = PoolSettings(statement_timeout_seconds=2.5, lock_timeout_seconds=1)
    async with open_database(
        database_url, application_name="cellgate-webhook", settings=settings
    ) as database:
        assert await database.pool.fetchval("SHOW application_name") == "cellgate-webhook"
        assert await database.pool.fetchval("SHOW statement_timeout") == "2500ms"
        assert await database.pool.fetchval("SHOW lock_timeout") == "1s"


async def test_an_embedded_database_is_started_and_stopped_with_the_pool(
    embedded_directory: Path,
) -> None:
    url = f"embedded:{embedded_directory}"
    async with open_database(url, application_name="tests") as database:
        assert await database.pool.fetchval("SELECT current_database()") == "cellgate"
        async with open_database(database.url, application_name="other process") as same:
            assert await same.pool.fetchval("SELECT 1") == 1
        assert database.server is not None
        pid = database.server.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_the_death_of_an_embedded_server_is_a_backend_error(
    embedded_directory: Path,
) -> None:
    url = f"embedded:{embedded_directory}"
    async with open_database(url, application_name="tests") as database:
        assert database.server is not None
        os.kill(database.server.pid, signal.SIGKILL)
        with pytest.raises(BackendError, match="the embedded PostgreSQL ended"):
            await database.wait_died()
        with pytest.raises(BackendError, match="Postgres failed while asking"):
            await _ask(database, "SELECT 1")


async def test_an_embedded_database_is_kept_alive(embedded_directory: Path) -> None:
    url = f"embedded:{embedded_directory}"
    async with open_database(url, application_name="tests") as database:
        assert database.server is not None
        keeper = asyncio.create_task(database.keep_alive())
        first_start = await _ask(database, _STARTED)
        os.kill(database.server.pid, signal.SIGKILL)
        async with asyncio.timeout(60):
            while await _ask_with_patience(database, _STARTED) == first_start:
                pass  # the old server's processes take a moment to notice
        keeper.cancel()
        await asyncio.wait([keeper])


async def _ask(database: Database, question: str) -> object:
    with backend_errors("asking"):
        return await database.pool.fetchval(question)


async def _ask_with_patience(database: Database, question: str) -> object:
    while True:
        try:
            return await _ask(database, question)
        except BackendError:
            await asyncio.sleep(0.01)


async def test_an_unknown_database_is_told(postgres: Postgres) -> None:
    message = await _error_of(postgres.database_url("nowhere"))
    assert "database nowhere: the database does not exist; create it with createdb" in message


async def test_a_wrong_password_is_told() -> None:
    async with _server_that_answers("28P01", "password authentication failed") as url:
        message = await _error_of(url)
    assert "refuses the user (password authentication failed): check user and password" in message


async def test_another_refusal_is_told_in_the_servers_words() -> None:
    async with _server_that_answers("53300", "sorry, too many clients already") as url:
        message = await _error_of(url)
    assert message.endswith("refuses the connection: sorry, too many clients already")


async def test_a_server_that_keeps_starting_up_is_given_up() -> None:
    async with _server_that_answers("57P03", "the database system is starting up") as url:
        message = await _error_of(url)
    assert "no answer within 0.3 s" in message


async def test_a_closed_port_is_told() -> None:
    with socket.socket() as taken:  # bound but not listening
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        message = await _error_of(f"postgresql://me:s3cret@127.0.0.1:{port}/cellgate")
    assert message.startswith(f"cannot reach PostgreSQL at 127.0.0.1:{port}, database cellgate: ")
    assert "check --database-url" in message


async def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        message = await _error_of(f"postgresql://me:s3cret@127.0.0.1:{port}/cellgate")
    assert "no answer within 0.3 s" in message


async def test_an_option_that_asyncpg_refuses_is_told_without_its_words() -> None:
    message = await _error_of("postgresql://me:s3cret@127.0.0.1/x?sslmode=s3cret")
    assert message.startswith("--database-url is not valid (")
