"""Debian's stock PostgreSQL, or any server named by CELLGATE_TEST_DATABASE_URL, for a test run.

The tests must hold on a server that we did not build and configure. Without a URL the newest
server found under /usr/lib/postgresql is started in a temporary directory, as an unprivileged
user where we are root; without that, tests that want it are skipped and say why.
"""

import asyncio
import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from state.database.database import Database, open_database
from state.database.migrator import migrate

_VARIABLE = "CELLGATE_TEST_DATABASE_URL"
_FOLDER = Path("/usr/lib/postgresql")
_MISSING = f"no stock PostgreSQL: install Debian's package postgresql, or set {_VARIABLE}"


def find_programs() -> Path | None:
    """Return the folder of the newest installed server's programs."""
    found = sorted(_FOLDER.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


def unprivileged() -> Mapping[str, Any]:
    """Return arguments for subprocess that run a program as another user if this one is root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A temporary folder that an unprivileged server may use."""
    folder = Path(tempfile.mkdtemp(prefix="cellgate-stock-"))
    try:
        if ids := unprivileged():
            os.chown(folder, ids["user"], ids["group"])
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def stock_server() -> Iterator[str]:
    """The URL of a stock server."""
    programs = find_programs()
    if url := os.environ.get(_VARIABLE):
        yield url
    elif programs is None:
        pytest.skip(_MISSING)
    else:
        with open_folder() as folder, _running(programs, folder):
            yield f"postgresql://cellgate@/postgres?host={folder}&port=5432"


@contextlib.contextmanager
def _running(programs: Path, folder: Path) -> Iterator[None]:
    data = folder / "data"
    subprocess.run(
        [programs / "initdb", "-D", data, "-U", "cellgate", "--auth=trust", "--no-sync"],
        check=True, stdout=subprocess.DEVNULL, cwd=folder, **unprivileged(),
    )  # fmt: skip
    with (folder / "log").open("w") as log:
        # Another time zone than ours, so that a forgotten one shows.
        server = subprocess.Popen(
            [
                programs / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=",
                "-c", "timezone=America/New_York", "-c", "max_connections=50",
            ],
            stderr=log, cwd=folder, **unprivileged(),
        )  # fmt: skip
    try:
        _wait_until_ready(data / "postmaster.pid", server)
        yield
    finally:
        server.send_signal(signal.SIGINT)  # does not wait for clients
        server.wait(30)


def _wait_until_ready(status: Path, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 30
    while not (status.exists() and "ready" in status.read_text()):
        assert server.poll() is None, "the stock server ended"
        assert time.monotonic() < deadline, "the stock server does not start"
        time.sleep(0.02)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """The stock server of this run, with a template database that has our schema."""

    url: str
    template: str
    numbers: "itertools.count[int]"

    def database_url(self, name: str) -> str:
        """Return the URL of another database of the same server."""
        return urlsplit(self.url)._replace(path=f"/{name}").geturl()

    async def execute(self, statement: str) -> None:
        """Run a statement as the owner of the server."""
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


_KEY = pytest.StashKey[Stock]()


@pytest.fixture
def stock(pytestconfig: pytest.Config) -> Stock:
    """The stock server of this run, started on first use."""
    if _KEY not in pytestconfig.stash:
        stack = contextlib.ExitStack()
        pytestconfig.add_cleanup(stack.close)
        url = stack.enter_context(stock_server())
        stock = Stock(url=url, template=f"migrated_{os.getpid()}", numbers=itertools.count())
        asyncio.run(_make_template(stock))
        stack.callback(lambda: asyncio.run(stock.execute(f"DROP DATABASE {stock.template}")))
        pytestconfig.stash[_KEY] = stock
    return pytestconfig.stash[_KEY]


async def _make_template(stock: Stock) -> None:
    await stock.execute(f"CREATE DATABASE {stock.template}")
    url = stock.database_url(stock.template)
    async with open_database(url, application_name="tests") as database:
        await migrate(database.pool)


@pytest.fixture
async def stock_database(stock: Stock) -> AsyncIterator[Database]:
    """A fresh database with the current schema on a stock server, open."""
    name = f"test_{os.getpid()}_{next(stock.numbers)}"
    await stock.execute(f"CREATE DATABASE {name} TEMPLATE {stock.template}")
    async with open_database(stock.database_url(name), application_name="tests") as database:
        yield database
    await stock.execute(f"DROP DATABASE {name} WITH (FORCE)")
