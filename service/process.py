"""From the command line to a running event loop, and back to an exit code.

Exit codes: 0 ended as asked; 1 a part failed; 2 the settings cannot work (one line says what to
do); 130 interrupted while starting, or twice.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable

import uvloop

from service.exit_codes import Exit


class Stop:
    """The request to end, from SIGTERM or SIGINT; a process that waits for it has started."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._is_awaited = False

    @property
    def can_be_heard(self) -> bool:
        """False while the process starts, and after the first request."""
        return self._is_awaited and not self._event.is_set()

    def set(self) -> None:
        """Ask the process to end."""
        self._event.set()

    async def wait(self) -> None:
        """Return when the process is asked to end."""
        self._is_awaited = True
        await self._event.wait()


Main = Callable[[Stop], Awaitable[Exit]]


def run_until_signal(main: Main) -> Exit:
    """Run `main` until it returns or a signal ends it.

    A signal during the start, or a second one, cancels it: it cleans up, but finishes nothing.
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
