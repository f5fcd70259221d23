"""Kill -9 of Postgres and of its clients at random, then count: `python -m tests.chaos.ledger`.

What must hold when the dust settles: every sum equals the charges that survived, no limit is
exceeded, whatever a client was told is true, and no connection or transaction of a dead client is
left. The short form runs with the tests, five minutes by hand: `--seconds 300`.
"""

import asyncio
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import asyncpg
import uvloop

from policy.errors import BackendError
from state.database.database import open_database
from state.database.migrator import migrate
from state.embedded import EmbeddedPostgres
from tests.chaos import command
from tests.chaos.ledger_client import GROUP_LIMIT, USER_LIMIT

_ROOT = Path(__file__).parents[2]
_CLIENTS = 3
_DIFFERENT = """
    SELECT h.user_name, h.group_name, h.leaf_count, h.gang_count,
        coalesce(sum(c.leaf_count), 0) AS leaf_sum, count(c.gang) AS gang_sum
    FROM holdings AS h
    LEFT JOIN charges AS c ON
        (h.user_name IN ('', c.user_name)) AND (h.group_name IN ('', c.group_name))
    GROUP BY h.user_name, h.group_name
    HAVING h.leaf_count <> coalesce(sum(c.leaf_count), 0) OR h.gang_count <> count(c.gang)
"""
_OVER = """
    SELECT user_name, group_name, leaf_count FROM holdings
    WHERE (group_name = '' AND leaf_count > $1) OR (user_name = '' AND leaf_count > $2)
"""
_LEFT = """
    SELECT pid, state, query FROM pg_stat_activity
    WHERE application_name = 'chaos' OR state LIKE 'idle in transaction%'
"""
_PREPARED = "SELECT count(*) FROM pg_prepared_xacts"


class Chaos:
    """One run: a server, clients, and the kills."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        self._clients: list[subprocess.Popen[bytes]] = []
        self.kills: Counter[str] = Counter()

    async def run(self, seconds: float) -> dict[str, int]:
        """Make a mess for so long; raises AssertionError if something is wrong afterwards."""
        async with EmbeddedPostgres(self._folder / "data") as server:
            async with open_database(server.url, application_name="chaos setup") as database:
                await migrate(database.pool)
            try:
                await self._rage(server, until=time.monotonic() + seconds)
            finally:
                self._end_clients()
            return await self._check(server.url)

    async def _rage(self, server: EmbeddedPostgres, *, until: float) -> None:
        while time.monotonic() < until:
            while len(self._clients) < _CLIENTS:
                self._clients.append(self._start_client(server.url))
            await asyncio.sleep(random.uniform(0.3, 1.5))
            if random.random() < 0.4:
                await self._kill_server(server)
            else:
                self._kill_client()

    async def _kill_server(self, server: EmbeddedPostgres) -> None:
        self.kills["servers"] += 1
        os.kill(server.pid, signal.SIGKILL)
        with suppress(BackendError):
            await server.wait_died()
        await asyncio.sleep(random.uniform(0, 0.3))
        await server.start()

    def _kill_client(self) -> None:
        self.kills["clients"] += 1
        victim = self._clients.pop(random.randrange(len(self._clients)))
        assert not victim.poll(), "a client failed by itself"
        victim.kill()
        victim.wait()

    def _start_client(self, url: str) -> "subprocess.Popen[bytes]":
        name = f"client-{next(self._numbers)}"
        notes = self._folder / f"{name}.notes"
        module = "tests.chaos.ledger_client"
        return subprocess.Popen([sys.executable, "-m", module, url, notes, name], cwd=_ROOT)

    def _end_clients(self) -> None:
        for client in self._clients:
            client.kill()
            client.wait()

    async def _check(self, url: str) -> dict[str, int]:
        connection = await asyncpg.connect(url)
        try:
            await _check_nothing_is_left(connection)
            assert await connection.fetch(_DIFFERENT) == []
            assert await connection.fetch(_OVER, USER_LIMIT, GROUP_LIMIT) == []
            live = {row["gang"] for row in await connection.fetch("SELECT gang FROM charges")}
        finally:
            await connection.close()
        told = self._read_notes()
        assert told["C"] - told["r"] <= live, "an acknowledged charge is lost"
        assert not told["R"] & live, "a released charge is back"
        return {
            "acknowledged charges": len(told["C"]),
            "acknowledged releases": len(told["R"]),
            "live": len(live),
            "servers killed": self.kills["servers"],
            "clients killed": self.kills["clients"],
        }

    def _read_notes(self) -> dict[str, set[str]]:
        told: dict[str, set[str]] = {"C": set(), "r": set(), "R": set()}
        for file in self._folder.glob("*.notes"):
            for line in file.read_text().splitlines():
                what, gang = line.split()
                told[what].add(gang)
        return told


async def _check_nothing_is_left(connection: asyncpg.Connection) -> None:
    """The server needs a moment to see that a client is dead."""
    deadline = time.monotonic() + 20
    while left := await connection.fetch(_LEFT):
        assert time.monotonic() < deadline, left
        await asyncio.sleep(0.05)
    assert await connection.fetchval(_PREPARED) == 0


def rage(seconds: float) -> dict[str, int]:
    """Run chaos in a directory of its own; return what was counted."""
    with tempfile.TemporaryDirectory(prefix="cellgate-chaos-") as folder:
        counted: dict[str, int] = uvloop.run(Chaos(Path(folder)).run(seconds))
    return counted


if __name__ == "__main__":
    command.run("python -m tests.chaos.ledger", __doc__, rage)
