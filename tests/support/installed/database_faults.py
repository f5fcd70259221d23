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
    for pid in hung:
        os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(_HANG_SECONDS)
    finally:
        for pid in hung:
            os.kill(pid, signal.SIGCONT)


async def kill_connections() -> None:
    """Kill connections: the server restarts when one of its own is killed, as after a crash."""
    for pid in _postgres()[1:]:
        with suppress(ProcessLookupError):  # the server ends all when the first one dies
            os.kill(pid, signal.SIGKILL)


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
