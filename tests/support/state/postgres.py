"""Fixtures with a real PostgreSQL: one server for the whole run, a fresh database for each test.

A conftest.py that wants them imports them from here. They share one server all the same, because
what is made once hangs on pytest's configuration, not on a fixture.
"""

import asyncio
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import asyncpg
import pytest

from state.database.database import Database, open_database
from state.database.migrator import migrate

ROOT = Path(__file__).parents[3]
_TEMPLATE = "migrated"


class Owner:
    """A child process that owns an embedded server: `tests.support.state.embedded_owner`."""

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.state.embedded_owner", str(directory)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline())
        self.url: str = told["url"]
        self.server_pid: int = told["pid"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:  # closes the pipes, which asks it to stop, and waits
            pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """The server of this run, and data to start others with."""

    url: str
    pristine: Path
    numbers: "itertools.count[int]"

    def database_url(self, name: str) -> str:
        """Return the URL of another database of the same server."""
        parts = urlsplit(self.url)
        return parts._replace(path=f"/{name}").geturl()


_KEY = pytest.StashKey[Postgres]()


@pytest.fixture
def postgres(pytestconfig: pytest.Config) -> Postgres:
    """The server of this run, started on first use."""
    if _KEY not in pytestconfig.stash:
        pytestconfig.stash[_KEY] = _start(pytestconfig)
    return pytestconfig.stash[_KEY]


def _start(config: pytest.Config) -> Postgres:
    folder = Path(tempfile.mkdtemp(prefix="cellgate-tests-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    with Owner(folder / "pristine") as owner:
        asyncio.run(_make_template(owner.url))
    shutil.copytree(folder / "pristine", folder / "shared")
    owner = Owner(folder / "shared")
    config.add_cleanup(lambda: owner.__exit__())
    return Postgres(url=owner.url, pristine=folder / "pristine", numbers=itertools.count())


async def _make_template(url: str) -> None:
    await _execute(url, f"CREATE DATABASE {_TEMPLATE}")
    template = urlsplit(url)._replace(path=f"/{_TEMPLATE}").geturl()
    async with open_database(template, application_name="tests") as database:
        await migrate(database.pool)


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def _temporary_database(postgres: Postgres, template: str) -> AsyncIterator[str]:
    name = f"test_{os.getpid()}_{next(postgres.numbers)}"
    await _execute(postgres.url, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield postgres.database_url(name)
    await _execute(postgres.url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def empty_database_url(postgres: Postgres) -> AsyncIterator[str]:
    """The URL of a fresh database without any schema."""
    async for url in _temporary_database(postgres, "template1"):
        yield url


@pytest.fixture
async def database_url(postgres: Postgres) -> AsyncIterator[str]:
    """The URL of a fresh database with the current schema."""
    async for url in _temporary_database(postgres, _TEMPLATE):
        yield url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A fresh database with the current schema, open."""
    async with open_database(database_url, application_name="tests") as database:
        yield database


@pytest.fixture
def embedded_directory(postgres: Postgres, tmp_path: Path) -> Path:
    """The directory of an embedded server of the test's own: made earlier, not in use."""
    directory = tmp_path / "embedded"
    shutil.copytree(postgres.pristine, directory)
    return directory
