"""Turns for searches that callers ask for: one at a time, and a rest after each.

A search shares the processor with the leader's work. After a search the next one waits as long as
that one took, so that callers who ask without end get at most half of the processor.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class SearchTurns:
    """Gives one search after the other its turn."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._free_at = 0.0

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
        async with self._lock:
            clock = asyncio.get_running_loop().time
            await asyncio.sleep(max(0.0, self._free_at - clock()))
            began = clock()
            try:
                yield
            finally:
                self._free_at = 2 * clock() - began
