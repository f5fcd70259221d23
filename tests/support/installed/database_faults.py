"""Faults of the database of an installation: it hangs, or its processes are killed."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

_HANG_SECONDS = 5.0


async def hang_database() -> None:
    """Let the database answer nothing for some seconds."""
    hung = _postgres()
    _send(signal.SIGSTOP, hung)
    try:
        await asyncio.sleep(_HANG_SECONDS)
    finally:
        _send(signal.SIGCONT, hung)


async def kill_connections() -> None:
    """Kill connections: the server restarts when one of its own is killed, as after a crash."""
    _send(signal.SIGKILL, _postgres()[1:])


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


def _comm(pid: int) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""
