"""Waiting in tests: for a condition, not for a time."""

import asyncio
from collections.abc import Callable


async def eventually(condition: Callable[[], bool]) -> None:
    """Let other tasks and processes go on until the condition holds."""
    async with asyncio.timeout(60):
        while not condition():  # a poll, because what is waited for may be another process
            await asyncio.sleep(0.001)
