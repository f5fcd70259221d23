"""From the command line to a running event loop, and back to the shell with an exit code.

Exit codes: 0 ended as asked, 2 started with settings that cannot work (one line says what to do),
130 interrupted twice, so that it did not finish its work.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from enum import IntEnum

import uvloop


class Exit(IntEnum):
    """What the shell gets."""

    OK = 0
    USAGE = 2
    INTERRUPTED = 130


Main = Callable[[asyncio.Event], Awaitable[Exit]]


def run_until_signal(main: Main) -> Exit:
    """Run `main` with an event that SIGTERM or SIGINT sets; a second signal does not wait."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            return runner.run(_with_signals(main))
        except asyncio.CancelledError:
            return Exit.INTERRUPTED


async def _with_signals(main: Main) -> Exit:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(main(stop))

    def end() -> None:
        task.cancel() if stop.is_set() else stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    return await task
