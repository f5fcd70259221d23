"""Turns: reviews that would conflict in the ledger run one after the other."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from webhook.ledger_access.time_budget import TooBusyError, within_budget

_Key = TypeVar("_Key", bound=Hashable)


class Turns(Generic[_Key]):
    """One turn at a time per key. Reviews that hold or await a turn keep its lock alive."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[_Key, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn_of(self, key: _Key) -> AsyncIterator[None]:
        """Wait for a turn; TooBusyError if other reviews use up the time budget."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        try:
            async with within_budget():
                await lock.acquire()
        except TimeoutError as exc:
            raise TooBusyError(f"other reviews of {key} took the whole time budget") from exc
        try:
            yield
        finally:
            lock.release()
