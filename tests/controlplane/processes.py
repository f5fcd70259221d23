"""A child process of the test run: its log, its signals, its end.

A child is signalled only through the handle made here, never by name, and the kernel kills it
when this process dies, even by kill -9. The kernel ties that to the *thread* that started the
child, so start children from the main thread, not from an executor.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.controlplane.waiting import poll_until

_LAUNCHER = Path(__file__).with_name("launcher.py")
_TAIL_BYTES = 64 * 1024
_POLL_SECONDS = 0.02


def tie_to_this_process(argv: Sequence[str]) -> list[str]:
    """Return a command line that runs `argv` but ends with this process."""
    return [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), *argv]


class ChildProcess:
    """One program with its log file; it can be started again after it ended."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log_path: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = name
        self.log_path = log_path
        self._argv = list(argv)
        self._env = env
        self._cwd = cwd
        self._popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the program; its output is appended to the log."""
        if self.is_running():
            raise RuntimeError(f"{self.name} is already running")
        with self.log_path.open("ab") as log:
            self._popen = subprocess.Popen(
                tie_to_this_process(self._argv),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._env,
                cwd=self._cwd,
                # Ctrl-C reaches the test run only, which then stops its children in order.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id of the latest start."""
        return self._handle().pid

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._handle().poll()

    def is_running(self) -> bool:
        """Tell whether it was started and has not ended (a paused process is running)."""
        return self._popen is not None and self._popen.poll() is None

    async def wait(self, *, deadline_seconds: float) -> int:
        """Return the exit code once it has ended; TimeoutError if it does not."""

        async def has_ended() -> bool:
            return not self.is_running()

        await poll_until(
            has_ended,
            deadline_seconds=deadline_seconds,
            poll_seconds=_POLL_SECONDS,
            explain=lambda: f"{self.name} is still running",
        )
        return self._handle().returncode

    async def stop(self, *, grace_seconds: float = 10) -> None:
        """Ask it to end and kill it after the grace; does nothing if it has ended."""
        if not self.is_running():
            return
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a paused process could not act on SIGTERM
        try:
            await self.wait(deadline_seconds=grace_seconds)
        except TimeoutError:
            self.kill()

    async def restart(self, *, grace_seconds: float = 10) -> None:
        """Stop it if it runs, then start the same command line again."""
        await self.stop(grace_seconds=grace_seconds)
        self.start()

    def kill(self) -> None:
        """End it with SIGKILL, as an out-of-memory killer would, and reap it."""
        if self.is_running():
            self._signal(signal.SIGKILL)
            self._handle().wait()

    def pause(self) -> None:
        """Freeze it: sockets stay open, nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        self._signal(signal.SIGCONT)

    def tail(self, lines: int = 40) -> str:
        """Return the last lines of the log."""
        if not self.log_path.exists():
            return ""
        with self.log_path.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _TAIL_BYTES))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])

    def _signal(self, number: signal.Signals) -> None:
        self._handle().send_signal(number)

    def _handle(self) -> subprocess.Popen[bytes]:
        if self._popen is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._popen
