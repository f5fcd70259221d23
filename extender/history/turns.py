"""Turns of questions to the history: few at once, since every token may ask.

The other connections to Postgres are for decisions.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from extender.inspection.access import OWN_ONLY
from policy.errors import BackendError
from state.history.runs import RunHistory

_AT_ONCE: Final = 2
_MOST_WAITING: Final = 30
_MOST_OF_ONE: Final = 4
"""Questions of one caller that are read or wait, so that one caller does not take all places."""


class HistoryTurns:
    """Gives requests their turn to read the history."""

    def __init__(self, history: RunHistory | None) -> None:
        self._history = history
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._asking: Counter[str] = Counter()

    @asynccontextmanager
    async def take(self, request: web.Request) -> AsyncIterator[RunHistory]:
        """Wait until few others read; answer 429 if too many wait, 503 without a history."""
        if self._history is None:
            raise BackendError("this extender has no history")
        caller = request.get(OWN_ONLY, "")
        is_over = caller and self._asking[caller] >= _MOST_OF_ONE
        if is_over or self._asking.total() >= _AT_ONCE + _MOST_WAITING:
            why = "too many questions to the history at once; ask again when one is answered"
            raise web.HTTPTooManyRequests(text=why)
        self._asking[caller] += 1
        try:
            async with self._slots:
                yield self._history
        finally:
            self._asking -= Counter([caller])  # drops callers that ask nothing
