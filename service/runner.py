"""Runs one service: it listens first, becomes ready later, and is drained at the end.

    async with run_service(app, health=…, address=…) as service: …

The server listens before anything else is started, so that probes are answered while the service
recovers. It stops listening last, when all requests in flight are answered.
"""

import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CollectorRegistry

from service.health import Health
from service.http import LINGER_SECONDS, METRICS, HttpServer
from service.settings import Address
from service.tasks import Supervisor

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningService:
    """A service that listens."""

    name: str
    url: str
    health: Health
    supervisor: Supervisor
    registry: CollectorRegistry
    """Of its metrics; parts that the caller adds register theirs there, too."""


@asynccontextmanager
async def run_service(
    app: web.Application,
    *,
    name: str,
    health: Health,
    address: Address,
    tls: ssl.SSLContext | None = None,
    linger_seconds: float = LINGER_SECONDS,
) -> AsyncIterator[RunningService]:
    """Serve `app` while the body runs, and then until callers have noticed the end."""
    server = HttpServer(app, address=address, tls=tls, linger_seconds=linger_seconds)
    url = await server.start()
    logger.info("service listening", extra={"service": name, "url": url})
    async with Supervisor(health) as supervisor:
        try:
            yield RunningService(
                name=name,
                url=url,
                health=health,
                supervisor=supervisor,
                registry=app[METRICS].registry,
            )
        finally:
            # Background tasks end after the last answer, which may need them.
            health.is_draining = True
            await server.stop()
    logger.info("service stopped", extra={"service": name})
