"""Plays worlds, each in a process of its own, as many at once as there are cores.

The main process waits, so that a signal is heard at once; it ends the others with itself. A process
is forked: it has arrivals and policies without a copy being sent to it. What it sends back is the
run without the world, since compiled rules cannot be sent.
"""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import fields
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import RawArray
from typing import Any, Final

from cli.log.progress import Progress
from policy.errors import InvariantError
from policy.submission import VcName
from service.garbage import settle_collector
from timemachine.alone import alone_in, arrivals_of
from timemachine.model import Arrival, Run, World
from timemachine.play import Progress as Played
from timemachine.play import play

_LOOK_SECONDS: Final = 0.2
_context: Final = multiprocessing.get_context("fork")


class Players:
    """Plays the same arrivals in several worlds."""

    def __init__(self, arrivals: Sequence[Arrival], progress: Progress) -> None:
        self._arrivals = arrivals
        self._progress = progress
        self._cores = asyncio.Semaphore(len(os.sched_getaffinity(0)))

    async def play(self, worlds: Sequence[World], *, what: str = "playing") -> list[Run]:
        """Play all arrivals in all worlds, and return the runs in the same order."""
        return await self.play_each([(self._arrivals, world) for world in worlds], what=what)

    async def play_alone(self, world: World, vcs: Sequence[VcName]) -> list[Run]:
        """Play the arrivals of each VC in the world that has only its promise."""
        games = [(arrivals_of(self._arrivals, vc), alone_in(world, vc)) for vc in vcs]
        return await self.play_each(games, what="playing each VC alone")

    async def play_each(
        self, games: Sequence[tuple[Sequence[Arrival], World]], *, what: str
    ) -> list[Run]:
        """Play arrivals in worlds, and return the runs in the same order."""
        parts = RawArray("d", max(1, len(games)))
        plays = [
            asyncio.create_task(self._play_one(arrivals, world, parts, place))
            for place, (arrivals, world) in enumerate(games)
        ]
        watch = asyncio.create_task(self._watch(parts, what))
        try:
            return await asyncio.gather(*plays)
        finally:
            for task in (*plays, watch):
                task.cancel()
            await asyncio.gather(*plays, watch, return_exceptions=True)
            self._progress.clear()

    async def _watch(self, parts: "Sequence[float]", what: str) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self._progress(what, sum(parts) / len(parts))

    async def _play_one(
        self,
        arrivals: Sequence[Arrival],
        world: World,
        parts: Any,  # noqa: ANN401 - ctypes
        place: int,
    ) -> Run:
        async with self._cores:
            receiver, sender = _context.Pipe(duplex=False)
            process = _context.Process(
                target=_play_here, args=(sender, arrivals, world, parts, place), daemon=True
            )
            process.start()
            sender.close()
            try:
                told = await _receive(receiver, process)
            finally:
                process.kill()
                process.join()
                receiver.close()
        return Run(world=world, **told)


async def _receive(receiver: Connection, process: ForkProcess) -> Mapping[str, Any]:
    loop, is_ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(receiver.fileno(), is_ready.set)
    try:
        await is_ready.wait()
    finally:
        loop.remove_reader(receiver.fileno())
    os.set_blocking(receiver.fileno(), True)  # the loop may have changed it
    try:
        found: Mapping[str, Any] = receiver.recv()
    except EOFError as exc:
        process.join()
        raise InvariantError(f"a process that played ended with {process.exitcode}") from exc
    return found


def _play_here(
    sender: Connection,
    arrivals: Sequence[Arrival],
    world: World,
    parts: Any,  # noqa: ANN401 - ctypes
    place: int,
) -> None:
    """Play in this process; an error is printed with its traceback, and ends it."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    settle_collector()

    def note(progress: Played) -> None:
        parts[place] = progress.arrived / max(progress.arrivals, 1)

    run = play(arrivals, world, on_progress=note)
    sender.send({one.name: getattr(run, one.name) for one in fields(run) if one.name != "world"})
    sender.close()
