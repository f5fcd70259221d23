"""Runs one service: it listens first, becomes ready later, and is drained at the end.

    async with run_service(app, health=…, address=…) as service: …

The server listens before anything else is started, so that probes are answered while the service
recovers. It stops listening last, when all requests in flight are answered.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry

from service.health import Health
from service.http import IN_FLIGHT, METRICS, SLOW
from service.settings import Address, cannot_listen
from service.tasks import Supervisor, wait_up_to

logger = logging.getLogger(__name__)

LINGER_SECONDS: Final = 0.2
"""How long new callers are still answered after the service was asked to end."""
_DRAIN_SECONDS: Final = 10.0
"""How long requests in flight may take then, also those whose bodies still arrive."""
_CLOSE_SECONDS: Final = 1.0
# Go keeps idle connections for 90 s, and does not repeat a POST that races with the server's close:
# the server must never close first.
_KEEPALIVE_SECONDS: Final = 180.0


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
    runner = web.AppRunner(
        app,
        access_log=None,
        handle_signals=False,
        keepalive_timeout=_KEEPALIVE_SECONDS,
        shutdown_timeout=_CLOSE_SECONDS,
        # No caller of ours compresses; and a small body must not become a large one.
        auto_decompress=False,
    )
    url = await _listen(runner, address, tls)
    logger.info("service listening", extra={"service": name, "url": url})
    async with Supervisor(health) as supervisor:
        assert runner.server is not None, "it listens"
        supervisor.start("slow connections", app[SLOW].run(runner.server))
        try:
            yield RunningService(
                name=name,
                url=url,
                health=health,
                supervisor=supervisor,
                registry=app[METRICS].registry,
            )
        finally:
            # Background tasks end after the last answer, which may need them. New callers are still
            # answered: they need a moment to notice that this process is no longer ready.
            health.is_draining = True
            await asyncio.sleep(linger_seconds)
            await wait_up_to(_DRAIN_SECONDS, app[IN_FLIGHT].none)
            await runner.cleanup()
    logger.info("service stopped", extra={"service": name})


async def _listen(runner: web.AppRunner, address: Address, tls: ssl.SSLContext | None) -> str:
    """Listen, and return the URL. Raises SettingsError if the address is not available."""
    await runner.setup()
    site = web.TCPSite(
        runner, address.host, address.port, ssl_context=tls, reuse_address=True, backlog=1024
    )
    try:
        await site.start()
    except OSError as exc:
        await runner.cleanup()
        raise cannot_listen(address, exc) from exc
    host, port = runner.addresses[0][:2]
    return f"{'https' if tls else 'http'}://{Address(host=host, port=port)}"
