"""Faults of the database of an installation: it hangs, or its processes are killed."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

_HANG_SECONDS = 5.0
_CONNECTION = "postgres: cellgate "
"""How the title of a process begins that serves a connection of ours."""


async def hang_database() -> None:
    """Let the database answer nothing for some seconds."""
    hung = _postgres()
    _send(signal.SIGSTOP, hung)
    try:
        await asyncio.sleep(_HANG_SECONDS)
    finally:
        _send(signal.SIGCONT, hung)


async def kill_connections() -> None:
    """Kill all connections: the server ends all others and recovers, as after a crash.

    Its own processes are spared: a server whose recovery is killed may never end.
    """
    _send(signal.SIGKILL, [pid for pid in _postgres()[1:] if _CONNECTION in _title(pid)])


def _send(what: signal.Signals, pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # the server ends all others when one dies
            os.kill(pid, what)


def _postgres() -> list[int]:
    """The processes of the database, which is a child of this one: its main process first."""
    return [pid for pid in _below(os.getpid()) if _comm(pid) == "postgres"]


def _below(pid: int) -> list[int]:
    found = []
    with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *_below(child)]
    return found


def _title(pid: int) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def _comm(pid: int) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""
