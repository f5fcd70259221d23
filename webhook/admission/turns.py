"""Turns: those who would only get in each other's way are decided one after the other."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from webhook.admission.time_budget import TooBusyError, within_budget

_Whose = TypeVar("_Whose", bound=Hashable)


class Turns(Generic[_Whose]):
    """One turn at a time for each of whoever they are about; who waits for one has its lock."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[_Whose, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn_of(self, whose: _Whose) -> AsyncIterator[None]:
        """Wait for a turn; TooBusyError if others take all of the review's budget."""
        lock = self._locks.setdefault(whose, asyncio.Lock())
        try:
            async with within_budget():
                await lock.acquire()
        except TimeoutError as exc:
            raise TooBusyError(f"others of {whose} are being decided") from exc
        try:
            yield
        finally:
            lock.release()
