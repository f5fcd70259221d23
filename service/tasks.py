"""Background tasks under a supervisor.

A task runs until its supervisor closes. If it ends before, by an exception or by returning, that is
a fault: it is logged, and the probes fail, so that Kubernetes restarts the process.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine, Generator
from contextlib import suppress
from typing import Any, Final, Self, TypeVar

from service.health import Health

logger = logging.getLogger(__name__)

T = TypeVar("T")

_SLICE_SECONDS: Final = 0.002


async def in_slices(work: Generator[None, None, T]) -> T:
    """Run work that yields often, and let other tasks run every few milliseconds."""
    until = time.perf_counter() + _SLICE_SECONDS
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        if time.perf_counter() >= until:
            await asyncio.sleep(0)
            until = time.perf_counter() + _SLICE_SECONDS


async def wait_up_to(seconds: float, event: asyncio.Event) -> None:
    """Wait for an event, but not longer than this.

    Not with `asyncio.wait_for`: in Python 3.11 it loses a cancellation that arrives together with
    the event, and a loop around it would never end.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


class Supervisor:
    """Owns the background tasks of one service; closing it ends them all."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._tasks: list[asyncio.Task[Any]] = []

    def start(self, name: str, work: Coroutine[Any, Any, Any]) -> None:
        """Run `work` until the supervisor closes."""
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._note_end)
        self._tasks.append(task)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        # The last one first: it may need tasks that were started before it.
        while self._tasks:
            task = self._tasks.pop()
            task.remove_done_callback(self._note_end)
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and task.exception():
                _log_death(task, "background task failed while stopping")

    def _note_end(self, task: asyncio.Task[Any]) -> None:
        """Record the end of a task that was not asked to end."""
        self._tasks.remove(task)
        _log_death(task, "background task died")
        self._health.fault(f"background task {task.get_name()} died")


def _log_death(task: asyncio.Task[Any], message: str) -> None:
    error = None if task.cancelled() else task.exception()
    logger.error(message, extra={"task": task.get_name()}, exc_info=error)
