"""Waiting in tests: for a condition, not for a time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


async def eventually(condition: Callable[[], bool]) -> None:
    """Let other tasks and processes go on until the condition holds."""
    async with asyncio.timeout(60):
        while not condition():  # a poll, because what is waited for may be another process
            await asyncio.sleep(0.001)


async def until(condition: Callable[[], Awaitable[Any]]) -> Any:
    """Ask until the answer is true; the answer."""
    async with asyncio.timeout(15):
        while not (found := await condition()):
            await asyncio.sleep(0.02)
    return found
