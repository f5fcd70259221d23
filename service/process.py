"""From the command line to a running event loop, and back to the shell with an exit code.

Exit codes: 0 ended as asked, 1 something died while running, 2 started with settings that cannot
work (one line says what to do).
"""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from enum import IntEnum

import uvloop

from policy.errors import SettingsError


class Exit(IntEnum):
    """What the shell gets."""

    OK = 0
    DIED = 1
    USAGE = 2


Main = Callable[[asyncio.Event], Awaitable[Exit]]


def run_until_signal(main: Main) -> Exit:
    """Run `main` with an event that SIGTERM or SIGINT sets."""
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_with_signals(main))
    except SettingsError as exc:
        print(f"cellgate: {exc}", file=sys.stderr)
        return Exit.USAGE


async def _with_signals(main: Main) -> Exit:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return await main(stop)
