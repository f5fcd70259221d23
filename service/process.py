"""From the command line to a running event loop, and back to the shell with an exit code.

Exit codes: 0 ended as asked, 1 a part of it died, 2 started with settings that cannot work (one
line says what to do), 130 interrupted before it was up, or twice.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from enum import IntEnum

import uvloop


class Exit(IntEnum):
    """What the shell gets."""

    OK = 0
    FAILED = 1
    """What was checked is not in order."""
    DIED = 1
    USAGE = 2
    INTERRUPTED = 130


class Stop:
    """The wish of SIGTERM or SIGINT that we end; whoever waits for it is up, and ends in order."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._is_awaited = False

    @property
    def can_be_heard(self) -> bool:
        """False while the process still starts, and once it was told."""
        return self._is_awaited and not self._event.is_set()

    def set(self) -> None:
        """Ask for the end."""
        self._event.set()

    async def wait(self) -> None:
        """Return when we are to end."""
        self._is_awaited = True
        await self._event.wait()


Main = Callable[[Stop], Awaitable[Exit]]


def run_until_signal(main: Main) -> Exit:
    """Run `main` until it ends by itself or a signal ends it.

    A signal while it still starts, or a second one, cancels it: it cleans up, but finishes nothing.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            return runner.run(_with_signals(main))
        except asyncio.CancelledError:
            return Exit.INTERRUPTED


async def _with_signals(main: Main) -> Exit:
    stop = Stop()
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(main(stop))

    def end() -> None:
        if stop.can_be_heard:
            stop.set()
        else:
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    return await task
