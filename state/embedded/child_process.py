"""One child process, started by the launcher, and its output on stderr.

The event loop reads the pipe with callbacks, so that no task is needed that could block the child.
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
# In PostgreSQL, ERROR is about one statement, which its client reports, and FATAL about one
# connection.
_LEVELS = {"WARNING": logging.WARNING, "FATAL": logging.WARNING, "PANIC": logging.ERROR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start a child process, except for the program."""

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
        """The process id, also after the process has ended."""
        pid = self._transport.get_pid()
        assert pid is not None
        return pid

    @property
    def is_running(self) -> bool:
        """False once the end of the process was noticed."""
        return not self.ended.is_set()

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._transport.get_returncode()

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.is_running:
            self._transport.send_signal(number)

    async def finish(self) -> int | None:
        """Wait until the process has ended and all its output was read."""
        await self._closed.wait()
        return self.exit_code

    def close(self) -> None:
        """Release its resources; kills the process if it still runs."""
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Handle the start of the process."""
        # uvloop's transport is no subclass of asyncio's.
        self._transport = transport  # type: ignore[assignment]

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Handle output."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line.decode(errors="replace"))

    def process_exited(self) -> None:
        """Handle the end of the process; its children may still hold the pipe."""
        self.ended.set()
        self.ready_or_ended.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the output: no process holds the pipe any more."""
        self._closed.set()

    def _take(self, line: str) -> None:
        self.lines.append(line)
        level = _LEVELS.get(line.partition(":")[0], logging.DEBUG)
        logger.log(level, "embedded server output", extra={"line": line})
        if _READY in line:
            self.ready_or_ended.set()


async def spawn(command: Sequence[str], launch: Launch) -> Child:
    """Start a child process that ends no later than the calling thread."""
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
            # Ctrl-C must not reach the server: it is stopped after its clients.
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
    """Return an environment without variables that affect PostgreSQL, such as PGDATA."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}
