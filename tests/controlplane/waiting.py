"""Waiting for something that can only be asked for: always with a deadline and an explanation."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def poll_until(
    ask: Callable[[], Awaitable[T]],
    *,
    deadline_seconds: float,
    poll_seconds: float = 0.1,
    explain: Callable[[], str],
) -> T:
    """Ask again and again, and return the first answer that is true.

    Raises TimeoutError with the text of `explain`, which is called when time is up.
    """
    deadline = asyncio.timeout(deadline_seconds)
    try:
        async with deadline:
            while True:
                if answer := await ask():
                    return answer
                await asyncio.sleep(poll_seconds)
    except TimeoutError:
        if not deadline.expired():  # the question itself timed out: not ours to explain
            raise
        raise TimeoutError(f"after {deadline_seconds} s: {explain()}") from None
