"""kill -9 of Postgres and of a writer, at random: nothing acknowledged is lost, nothing is doubled.

CELLGATE_CHAOS_SECONDS=300 runs it for five minutes.
"""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from policy.errors import BackendError
from state.database import Database, backend_errors, open_database
from state.migrate import migrate
from tests.postgres import ROOT

_SECONDS = float(os.environ.get("CELLGATE_CHAOS_SECONDS", "8"))


@dataclass(frozen=True)
class Life:
    """What one writer told before it was killed."""

    name: str
    appended: int
    acknowledged: int
    lost_before: int | None
    """Unknown of a writer that was killed before it could tell."""


async def test_no_acknowledged_decision_is_lost_and_none_is_doubled(
    embedded_directory: Path, tmp_path: Path
) -> None:
    url = f"embedded:{embedded_directory}"
    async with open_database(url, application_name="tests") as database:
        await migrate(database.pool)
        spool = tmp_path / "spool"
        async with _kept_alive(database):
            lives = await _lives(database, spool)
            await _until_up(database)
            last = await asyncio.to_thread(_finish, database.url, spool)
            rows = await database.pool.fetch("SELECT subject, count(*) FROM decisions GROUP BY 1")
    stored = {row["subject"]: row["count"] for row in rows}
    assert set(stored.values()) == {1}
    assert sum(life.acknowledged for life in lives) > 100
    for life, following in pairwise([*lives, last]):
        is_there = [f"{life.name}/{number}" in stored for number in range(life.appended)]
        assert all(is_there[: life.acknowledged]), f"{life.name} lost acknowledged decisions"
        if following.lost_before is not None:
            assert is_there.count(False) <= following.lost_before


@asynccontextmanager
async def _kept_alive(database: Database) -> AsyncIterator[None]:
    keeper = asyncio.create_task(database.keep_alive())
    try:
        yield
    finally:
        keeper.cancel()
        await asyncio.wait([keeper])


async def _lives(database: Database, spool: Path) -> list[Life]:
    """Let writers live and die one after the other, while the server dies too."""
    dice = random.Random(os.urandom(8))
    lives: list[Life] = []
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        with _writer(database.url, spool, f"life-{len(lives)}") as process:
            for _ in range(dice.randint(1, 3)):
                await asyncio.sleep(dice.uniform(0.2, 1.2))
                if dice.random() < 0.5:
                    _kill_server(database)
            process.kill()
            output, _ = process.communicate()
        lives.append(_life(f"life-{len(lives)}", output))
    return lives


async def _until_up(database: Database) -> None:
    """Wait for a server that was killed last: a writer that cannot connect at once gives up."""
    async with asyncio.timeout(60):
        while True:
            try:
                with backend_errors("waiting"):
                    await database.pool.execute("SELECT 1")
                return
            except BackendError:
                await asyncio.sleep(0.1)


def _kill_server(database: Database) -> None:
    assert database.server is not None
    # It may be dead already, and just being started again.
    with contextlib.suppress(ProcessLookupError, AssertionError):
        os.kill(database.server.pid, signal.SIGKILL)


def _finish(url: str, spool: Path) -> Life:
    """Run a last writer that only writes what is left."""
    with _writer(url, spool, "") as process:
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
    return _life("", output)


@contextmanager
def _writer(url: str, spool: Path, name: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.log_writer", url, str(spool), name]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _life(name: str, output: str) -> Life:
    """Read the last whole line; a writer that was killed early has none, and wrote nothing."""
    lines = [line for line in output.split("\n")[:-1] if line]
    if not lines:
        return Life(name, 0, 0, None)
    appended, acknowledged, lost = map(int, lines[-1].split())
    return Life(name, appended, acknowledged, lost)
