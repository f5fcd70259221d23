"""One child process, started through the launcher, and what it says on stderr.

Works by callbacks: no task has to read the pipe, so none can be forgotten or be slow.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from state.embedded.account import Account

logger = logging.getLogger(__name__)

_LAUNCHER = Path(__file__).with_name("launcher.py")
_READY = "database system is ready to accept connections"
_REMEMBERED_LINES = 50
# What PostgreSQL calls an ERROR is one client's statement, which that client reports itself; what
# it calls FATAL is one connection.
_LEVELS = {"WARNING": logging.WARNING, "FATAL": logging.WARNING, "PANIC": logging.ERROR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start a child: everything but the program."""

    folder: Path
    account: Account | None
    death_signal: signal.Signals
    inherited: Sequence[int]
    input: str = ""


class Child(asyncio.SubprocessProtocol):
    """A running or ended child process."""

    def __init__(self) -> None:
        self._transport: asyncio.SubprocessTransport
        self._rest = b""
        self._closed = asyncio.Event()
        self.lines: deque[str] = deque(maxlen=_REMEMBERED_LINES)
        self.ended = asyncio.Event()
        self.ready_or_ended = asyncio.Event()

    @property
    def pid(self) -> int:
        """Its process id, also after it has ended."""
        pid = self._transport.get_pid()
        assert pid is not None
        return pid

    @property
    def is_running(self) -> bool:
        """True until its end has been noticed."""
        return not self.ended.is_set()

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal, None while it runs."""
        return self._transport.get_returncode()

    def send(self, number: signal.Signals) -> None:
        """Signal it, unless it has ended."""
        if self.is_running:
            self._transport.send_signal(number)

    async def finish(self) -> int | None:
        """Wait until it has ended and all of its output has been read."""
        await self._closed.wait()
        return self.exit_code

    def close(self) -> None:
        """Forget it; kills it if it still runs."""
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Callback of the event loop: started."""
        # uvloop's transport is no subclass of asyncio's, so there is nothing to check here.
        self._transport = transport  # type: ignore[assignment]

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Callback of the event loop: it said something."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line.decode(errors="replace"))

    def process_exited(self) -> None:
        """Callback of the event loop: it ended, though its children may still hold the pipe."""
        self.ended.set()
        self.ready_or_ended.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Callback of the event loop: it ended and nobody holds the pipe."""
        self._closed.set()

    def _take(self, line: str) -> None:
        self.lines.append(line)
        level = _LEVELS.get(line.partition(":")[0], logging.DEBUG)
        logger.log(level, "embedded postgres said", extra={"line": line})
        if _READY in line:
            self.ready_or_ended.set()


async def spawn(command: Sequence[str], launch: Launch) -> Child:
    """Start a child that ends at the latest when the thread that calls this ends."""
    account = launch.account
    child = Child()
    with _as_file(launch.input) as source:
        await asyncio.get_running_loop().subprocess_exec(
            lambda: child,
            *(sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid())),
            str(int(launch.death_signal)),
            "-" if account is None else f"{account.uid}:{account.gid}",
            *command,
            cwd=launch.folder,
            env=_environment(),
            stdin=source,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=launch.inherited,
            # Ctrl-C on the terminal is for us; we stop the server when nothing needs it any more.
            start_new_session=True,
        )
    return child


@contextlib.contextmanager
def _as_file(text: str) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as source:
        source.write(text.encode())
        source.seek(0)
        yield source


def _environment() -> dict[str, str]:
    """Nothing of ours that could steer PostgreSQL (PGDATA, PGOPTIONS, a locale)."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}
