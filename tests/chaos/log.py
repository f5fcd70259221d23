"""Kill -9 of Postgres and of a writer at random, then count: `python -m tests.chaos.log`.

What must hold when the dust settles: every acknowledged decision is stored, once; whatever else is
missing was counted as lost by the process that came next. With a mirror, as in the second half of
the time, nothing is missing. The short form runs with the tests, five minutes by hand:
`--seconds 300`.
"""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import uvloop

from policy.errors import BackendError
from state.database.database import Database, backend_errors, open_database
from state.database.migrator import migrate
from tests.chaos import command

_ROOT = Path(__file__).parents[2]
_UP_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What one writer told before it was killed."""

    name: str
    appended: int
    acknowledged: int
    lost_before: int | None
    """Unknown of a writer that was killed before it could tell."""
    is_mirrored: bool


class Chaos:
    """One run: a server, one writer after the other, and the kills."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_mirrored = False
        self._servers_killed = 0

    async def run(self, seconds: float) -> dict[str, int]:
        """Make a mess for so long; raises AssertionError if something is wrong afterwards."""
        url = f"embedded:{self._folder / 'data'}"
        async with open_database(url, application_name="chaos") as database:
            await migrate(database.pool)
            async with _kept_alive(database):
                plain = await self._live_and_die(database, seconds=seconds / 2)
                self._is_mirrored = True
                mirrored = await self._live_and_die(database, seconds=seconds / 2)
                rows = await database.pool.fetch(
                    "SELECT subject, count(*) FROM decisions GROUP BY 1"
                )
        return self._check([*plain, *mirrored], {row["subject"]: row["count"] for row in rows})

    async def _live_and_die(self, database: Database, *, seconds: float) -> list[Life]:
        lives = await self._rage(database, until=time.monotonic() + seconds)
        await _until_up(database)
        return [*lives, await asyncio.to_thread(self._finish, database.url)]

    def _check(self, lives: Sequence[Life], stored: Mapping[str, int]) -> dict[str, int]:
        assert set(stored.values()) <= {1}, "a decision is stored twice"
        missing = 0
        for life, following in pairwise(lives):
            is_there = [f"{life.name}/{number}" in stored for number in range(life.appended)]
            assert all(is_there[: life.acknowledged]), f"{life.name} lost acknowledged decisions"
            missing += is_there.count(False)
            assert all(is_there) or not life.is_mirrored, f"{life.name} lost mirrored decisions"
            if following.lost_before is not None:
                assert is_there.count(False) <= following.lost_before, "a loss was not counted"
        return {
            "acknowledged decisions": sum(life.acknowledged for life in lives),
            "stored decisions": len(stored),
            "lost, none of them acknowledged": missing,
            "servers killed": self._servers_killed,
            "writers killed": len(lives) - 2,
            "mirrored decisions": sum(life.appended for life in lives if life.is_mirrored),
        }

    async def _rage(self, database: Database, *, until: float) -> list[Life]:
        """Let writers live and die one after the other, while the server dies too."""
        lives: list[Life] = []
        while time.monotonic() < until or _is_too_early(lives, until=until):
            name = f"{'mirrored' if self._is_mirrored else 'plain'}-{len(lives)}"
            with self._writer(database.url, name) as process:
                for _ in range(random.randint(1, 3)):
                    await asyncio.sleep(random.uniform(0.2, 1.2))
                    if random.random() < 0.5:
                        self._kill_server(database)
                process.kill()
                output, _ = process.communicate()
            lives.append(self._life(name, output))
        return lives

    def _kill_server(self, database: Database) -> None:
        assert database.server is not None
        # It may be dead already, and just being started again.
        with contextlib.suppress(ProcessLookupError, AssertionError):
            os.kill(database.server.pid, signal.SIGKILL)
            self._servers_killed += 1

    def _finish(self, url: str) -> Life:
        """Run a last writer that only writes what is left."""
        with self._writer(url, "") as process:
            output, _ = process.communicate(timeout=_UP_SECONDS)
            assert process.returncode == 0
        return self._life("", output)

    @contextmanager
    def _writer(self, url: str, name: str) -> Iterator["subprocess.Popen[str]"]:
        folder = str(self._folder / ("mirrored" if self._is_mirrored else "spool"))
        mirror = folder if self._is_mirrored else ""
        command = [sys.executable, "-m", "tests.chaos.log_writer", url, folder, mirror, name]
        with subprocess.Popen(
            command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def _life(self, name: str, output: str) -> Life:
        """Read the last whole line; a writer that was killed early has none, and wrote nothing."""
        lines = [line for line in output.split("\n")[:-1] if line]
        appended, acknowledged, lost = map(int, lines[-1].split()) if lines else (0, 0, None)
        return Life(
            name=name,
            appended=appended,
            acknowledged=acknowledged,
            lost_before=lost,
            is_mirrored=self._is_mirrored,
        )


def _is_too_early(lives: Sequence[Life], *, until: float) -> bool:
    """On a busy machine writers may be killed before they come to write anything."""
    is_too_late = time.monotonic() > until + _UP_SECONDS
    return not is_too_late and not any(life.acknowledged for life in lives)


@asynccontextmanager
async def _kept_alive(database: Database) -> AsyncIterator[None]:
    keeper = asyncio.create_task(database.keep_alive())
    try:
        yield
    finally:
        keeper.cancel()
        await asyncio.wait([keeper])


async def _until_up(database: Database) -> None:
    """Wait for a server that was killed last: a writer that cannot connect at once gives up."""
    async with asyncio.timeout(_UP_SECONDS):
        while True:
            try:
                with backend_errors("waiting"):
                    await database.pool.execute("SELECT 1")
                return
            except BackendError:
                await asyncio.sleep(0.1)


def rage(seconds: float) -> dict[str, int]:
    """Run chaos in a directory of its own; return what was counted."""
    with tempfile.TemporaryDirectory(prefix="cellgate-chaos-") as folder:
        counted: dict[str, int] = uvloop.run(Chaos(Path(folder)).run(seconds))
    return counted


if __name__ == "__main__":
    command.run("python -m tests.chaos.log", __doc__, rage)
