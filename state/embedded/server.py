"""Starts, stops and restarts the embedded server."""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self
from urllib.parse import quote

from policy.errors import BackendError, InvariantError, SettingsError
from state.embedded import account, socket_directory
from state.embedded.child_process import Child, Launch, spawn
from state.embedded.data_directory import DataDirectory
from state.embedded.failure_advice import explain
from state.embedded.installation import copy_installation, find_installation

logger = logging.getLogger(__name__)

_NAME = "cellgate"
_IN_CURRENT_FOLDER = ("-D", "/proc/self/cwd")
_INITDB = (
    *_IN_CURRENT_FOLDER,
    f"--username={_NAME}",
    # Only the user of the server and root can reach the socket.
    "--auth-local=trust",
    "--auth-host=reject",
    # PostgreSQL's own collation, so that an upgrade of the C library does not break an index.
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    # One sync of the file system instead of one for each of a thousand files.
    "--sync-method=syncfs",
    # Commits wait while a new WAL segment is zero-filled, which takes tens of milliseconds for the
    # usual 16 MB.
    "--wal-segsize=1",
)
_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",  # only a part of the name of the socket
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_destination": "stderr",
    "logging_collector": "off",
    "log_min_messages": "warning",
    "log_line_prefix": "",
    "log_checkpoints": "off",
    # The usual values; initdb would scale them down with the WAL segments.
    "min_wal_size": "80MB",
    "max_wal_size": "1GB",
}
_ORPHAN_GRACE_SECONDS = 5.0
_ORPHAN_END_SECONDS = 10.0
# Recovery after a kill may take long, and an interrupted recovery starts again.
_START_SECONDS = 600.0
_FAST_STOP_SECONDS = 15.0
_IMMEDIATE_STOP_SECONDS = 7.0
_OUTPUT_SECONDS = 1.0
_POLL_SECONDS = 0.02


class EmbeddedPostgres:
    """A PostgreSQL server on the data of one directory; it ends no later than this process.

    One event loop starts, watches and stops it, in a thread that lives at least as long. A server
    that died can be started again, at the same URL. A failure to start is a SettingsError of one
    line, and no process is left; after a failed first start the directory is unlocked.
    """

    def __init__(self, directory: Path, *, installation: Path | None = None) -> None:
        self._directory = DataDirectory(Path(os.path.abspath(directory.expanduser())))
        self._installation = installation
        self._account: account.Account | None = None
        self._sockets: socket_directory.SocketDirectory | None = None
        self._programs: Path | None = None
        self._server: Child | None = None

    @property
    def url(self) -> str:
        """The URL of the database for clients of the same user and of root."""
        assert self._sockets is not None
        host = quote(str(self._sockets.path), safe="")
        return f"postgresql://{_NAME}@/{_NAME}?host={host}&port={_SETTINGS['port']}"

    @property
    def pid(self) -> int:
        """The process id of the server."""
        assert self._server is not None
        return self._server.pid

    async def start(self) -> str:
        """Start the server, creating its data on first use; return the URL of the database."""
        if self._server is not None and self._server.is_running:
            raise InvariantError("the embedded server is already running")
        undo = self._release if self._sockets is None else self._close_server
        try:
            await self._start()
        except BaseException:
            undo()
            raise
        return self.url

    async def stop(self) -> None:
        """Stop the server, gracefully if possible, and unlock the directory."""
        try:
            if self._server is not None:
                await _end(self._server)
        finally:
            self._release()

    async def wait_died(self) -> NoReturn:
        """Raise BackendError when the server ends unexpectedly."""
        assert self._server is not None
        server = self._server
        await server.ended.wait()
        reason = await _explain_end(server)
        raise BackendError(
            f"the embedded PostgreSQL ended with exit code {server.exit_code}: {reason}"
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def _start(self) -> None:
        if not sys.platform.startswith("linux"):
            raise SettingsError(
                "an embedded database works on Linux only: set --database-url postgresql://…"
            )
        installation = self._installation or find_installation()
        self._directory.claim()
        await self._end_earlier_server()
        self._prepare(installation)
        if not self._directory.has_data:
            await self._make_data()
        self._directory.remove_leftovers()
        await self._launch_server()

    async def _end_earlier_server(self) -> None:
        """Wait until the processes of a server whose owner was killed end; kill them otherwise."""
        self._close_server()
        if await self._lock_server_within(_ORPHAN_GRACE_SECONDS):
            return
        orphans = self._directory.find_servers()
        logger.warning("killing the server of an earlier run", extra={"pids": orphans})
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not await self._lock_server_within(_ORPHAN_END_SECONDS):
            raise SettingsError(
                f"embedded database {self._directory.path} is still in use by PostgreSQL processes "
                "of an earlier run: end the processes that hold "
                f"{self._directory.path / 'server.lock'} open"
            )

    async def _lock_server_within(self, seconds: float) -> bool:
        deadline = asyncio.get_running_loop().time() + seconds
        while not self._directory.lock_server():
            if asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True

    def _prepare(self, installation: Path) -> None:
        """Choose the user of the server, and put socket and programs where that user can go."""
        if self._sockets is not None:
            return
        self._account = account.server_account([self._directory.data, self._directory.path])
        try:
            self._sockets = socket_directory.make_socket_directory(self._account)
            if self._account is not None:
                installation = copy_installation(installation, self._sockets.path)
                socket_directory.change_owner(self._sockets, self._account)
                if self._directory.data.exists() and self._directory.data.stat().st_uid == 0:
                    account.give(self._directory.data, self._account)
        except OSError as error:
            raise SettingsError(_explain_preparation(error, self._account)) from error
        self._programs = installation / "bin"

    async def _make_data(self) -> None:
        """Create the data under another name, then rename it, so that `data` is always complete."""
        self._directory.make_new_data()
        if self._account is not None:
            account.give(self._directory.new_data, self._account)
        await self._run("initdb", _INITDB)
        arguments = ("--single", *_IN_CURRENT_FOLDER, "-c", "exit_on_error=on", "postgres")
        await self._run("postgres", arguments, text=f"CREATE DATABASE {_NAME}\n")
        self._directory.adopt_new_data()
        logger.info("embedded database created", extra={"directory": str(self._directory.path)})

    async def _run(self, program: str, arguments: Sequence[str], *, text: str = "") -> None:
        """Run a program in the new data directory until it ends."""
        launch = self._launch(self._directory.new_data, signal.SIGKILL)
        child = await spawn(self._command(program, arguments), replace(launch, input=text))
        try:
            if await child.finish() != 0:
                raise await self._failure(child)
        finally:
            child.close()

    async def _launch_server(self) -> None:
        assert self._sockets is not None
        settings = {**_SETTINGS, "unix_socket_directories": str(self._sockets.path)}
        options = [option for name in settings for option in ("-c", f"{name}={settings[name]}")]
        command = self._command("postgres", (*_IN_CURRENT_FOLDER, *options))
        # SIGINT requests a fast shutdown, which does not wait for clients and avoids a recovery.
        self._server = await spawn(command, self._launch(self._directory.data, signal.SIGINT))
        self._directory.unlock_server()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._server.ready_or_ended.wait(), _START_SECONDS)
        if not (self._server.is_running and self._server.ready_or_ended.is_set()):
            raise await self._failure(self._server)

    def _command(self, program: str, arguments: Sequence[str]) -> list[str]:
        assert self._programs is not None
        return [str(self._programs / program), *arguments]

    def _launch(self, folder: Path, death_signal: signal.Signals) -> Launch:
        assert self._sockets is not None
        assert self._directory.server_lock is not None
        return Launch(
            folder=folder,
            account=self._account,
            death_signal=death_signal,
            inherited=[self._directory.server_lock, self._sockets.lock],
        )

    async def _failure(self, child: Child) -> SettingsError:
        return SettingsError(
            f"embedded database {self._directory.path}: {await _explain_end(child)}"
        )

    def _close_server(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def _release(self) -> None:
        """Release all resources; kill the server if it still runs."""
        self._close_server()
        if self._sockets is not None:
            self._sockets.close()
            self._sockets = None
        self._directory.release()


def _explain_preparation(error: OSError, user: account.Account | None) -> str:
    # EINVAL: the user does not exist in a user namespace.
    if user is not None and error.errno in (errno.EPERM, errno.EINVAL):
        return (
            f"PostgreSQL refuses to run as root, and this process may not give files to user "
            f"{user.uid}: run as an ordinary user, or set --database-url postgresql://…"
        )
    return (
        f"cannot copy PostgreSQL to {tempfile.gettempdir()}: {error.strerror}; free some space "
        "there, or set TMPDIR to another directory"
    )


async def _end(server: Child) -> None:
    """Request a fast shutdown, then an immediate one, then kill the server."""
    for number, seconds in (
        (signal.SIGINT, _FAST_STOP_SECONDS),
        (signal.SIGQUIT, _IMMEDIATE_STOP_SECONDS),
    ):
        server.send(number)
        with contextlib.suppress(TimeoutError):
            # Not asyncio.timeout: before Python 3.11.3 it fails in a task that is being cancelled.
            await asyncio.wait_for(server.finish(), seconds)
            return
    server.send(signal.SIGKILL)
    await server.ended.wait()


async def _explain_end(child: Child) -> str:
    """Explain the end of a process from its output, which its children may keep open a while."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(child.finish(), _OUTPUT_SECONDS)
    return explain(child.lines)
