"""Connections whose first request does not arrive in time are closed.

aiohttp limits how long a connection may be idle after a request, and `service.http` limits bodies.
A connection that never sends the whole header of its first request would stay open for ever; with
enough of them a caller could take all connections that the process may have.
"""

import asyncio
import logging
from typing import Any, Final, NoReturn

from aiohttp import web

logger = logging.getLogger(__name__)

_HEADER_SECONDS: Final = 10.0
_EVERY_SECONDS: Final = 1.0


class SlowConnections:
    """Watches the connections of one server."""

    def __init__(self) -> None:
        self._asked: set[Any] = set()
        """Connections that have sent a whole request."""
        self._since: dict[Any, float] = {}

    def note(self, request: web.Request) -> None:
        """A request has arrived."""
        self._asked.add(request.protocol)

    async def run(self, server: web.Server) -> NoReturn:
        """Close slow connections until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            closed = self.close_slow(server, now=asyncio.get_running_loop().time())
            if closed:
                logger.info("slow connections closed", extra={"count": closed})

    def close_slow(self, server: web.Server, *, now: float) -> int:
        """Close the connections that are open for too long without a request; count them."""
        there = server.connections
        self._asked.intersection_update(there)
        self._since = {one: self._since.get(one, now) for one in there if one not in self._asked}
        slow = [one for one, since in self._since.items() if now - since >= _HEADER_SECONDS]
        for connection in slow:
            connection.force_close()
        return len(slow)
