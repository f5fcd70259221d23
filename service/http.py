"""The HTTP server of a service: probes, metrics, bounded bodies, and draining.

`build_app` builds an aiohttp application with `/healthz`, `/readyz`, `/metrics` and the middleware
that every service has. `HttpServer` serves it, with TLS or without, and stops without dropping a
response.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import orjson
from aiohttp import web
from aiohttp.typedefs import Middleware
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from policy.errors import BackendError, RequestError
from service.health import Health
from service.metrics import ServiceMetrics
from service.settings import Address, cannot_listen

logger = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# Go keeps idle connections for 90 s, and does not repeat a POST that races with the server's close:
# the server must never close first.
_KEEPALIVE_SECONDS = 180.0
# At the end: how long new callers are still answered, and how long requests in flight may take.
LINGER_SECONDS = 0.2
_BODY_SECONDS = 10.0
_DRAIN_SECONDS = 10.0
_CLOSE_SECONDS = 1.0


class _InFlight:
    """Counts the requests in flight."""

    def __init__(self) -> None:
        self._count = 0
        self.none = asyncio.Event()
        self.none.set()

    def __enter__(self) -> None:
        self._count += 1
        self.none.clear()

    def __exit__(self, *_: object) -> None:
        self._count -= 1
        if self._count == 0:
            self.none.set()


METRICS = web.AppKey("metrics", ServiceMetrics)
_IN_FLIGHT = web.AppKey("in_flight", _InFlight)


def encode_json(content: object) -> bytes:
    """Write JSON; a value that JSON cannot hold is written as its text."""
    return orjson.dumps(content, default=str)


def json_answer(content: object, *, status: int = 200) -> web.Response:
    """Answer with JSON and a Content-Length, so that Go clients reuse their connection."""
    return raw_json_answer(encode_json(content), status=status)


def raw_json_answer(body: bytes, *, status: int = 200) -> web.Response:
    """Answer with bytes that are JSON already."""
    return web.Response(body=body, status=status, content_type="application/json")


async def read_body(request: web.Request) -> bytes:
    """Read a whole body; answer 408 if it does not arrive in time, 400 if it is cut off."""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await request.read()
    except TimeoutError as exc:
        why = f"the body did not arrive within {_BODY_SECONDS:g} seconds"
        raise web.HTTPRequestTimeout(text=why) from exc
    except (ConnectionError, web.RequestPayloadError) as exc:
        raise web.HTTPBadRequest(text="the body was cut off") from exc


def build_app(
    *,
    health: Health,
    metrics: ServiceMetrics,
    max_body_bytes: int,
    guard: Middleware | None = None,
) -> web.Application:
    """Build an application with what every service has; the caller adds its own routes.

    The guard is the last middleware before every handler, probes included.
    """
    middlewares: list[Middleware] = [
        _measured(metrics),
        _closing_while_draining(health),
        answer_faults,
    ]
    if guard is not None:
        middlewares.append(guard)
    app = web.Application(client_max_size=max_body_bytes, middlewares=middlewares)
    app[_IN_FLIGHT] = _InFlight()
    app[METRICS] = metrics
    probes = _Probes(health, metrics)
    app.router.add_get("/healthz", probes.healthz)
    app.router.add_get("/readyz", probes.readyz)
    app.router.add_get("/metrics", probes.metrics)
    return app


class HttpServer:
    """Serves one application on one address until it is stopped."""

    def __init__(
        self,
        app: web.Application,
        *,
        address: Address,
        tls: ssl.SSLContext | None = None,
        linger_seconds: float = LINGER_SECONDS,
    ) -> None:
        self._app = app
        self._linger_seconds = linger_seconds
        self._address = address
        self._tls = tls
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            keepalive_timeout=_KEEPALIVE_SECONDS,
            shutdown_timeout=_CLOSE_SECONDS,
            # No caller of ours compresses; and a small body must not become a large one.
            auto_decompress=False,
        )

    async def start(self) -> str:
        """Listen, and return the URL. Raises SettingsError if the address is not available."""
        await self._runner.setup()
        site = web.TCPSite(
            self._runner,
            self._address.host,
            self._address.port,
            ssl_context=self._tls,
            reuse_address=True,
            backlog=1024,
        )
        try:
            await site.start()
        except OSError as exc:
            await self._runner.cleanup()
            raise cannot_listen(self._address, exc) from exc
        host, port = self._runner.addresses[0][:2]
        return f"{'https' if self._tls else 'http'}://{Address(host=host, port=port)}"

    async def stop(self) -> None:
        """Answer all requests in flight, also those whose bodies still arrive, then close.

        New callers are still answered, each for the last time on its connection: they need a moment
        to notice that this process is no longer ready.
        """
        await asyncio.sleep(self._linger_seconds)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._app[_IN_FLIGHT].none.wait(), _DRAIN_SECONDS)
        await self._runner.cleanup()


class _Probes:
    def __init__(self, health: Health, metrics: ServiceMetrics) -> None:
        self._health = health
        self._metrics = metrics

    async def healthz(self, _: web.Request) -> web.Response:
        return self._probe(is_ok=self._health.is_alive)

    async def readyz(self, _: web.Request) -> web.Response:
        return self._probe(is_ok=self._health.is_ready)

    async def metrics(self, _: web.Request) -> web.Response:
        self._metrics.ready.set(self._health.is_ready)
        body = generate_latest(self._metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    def _probe(self, *, is_ok: bool) -> web.Response:
        text = "ok" if is_ok else "\n".join(self._health.reasons())
        return web.Response(text=text + "\n", status=200 if is_ok else 503)


@web.middleware
async def answer_faults(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer errors as JSON; an unexpected one is logged here, once, and not shown."""
    try:
        return await handler(request)
    except web.HTTPException as exc:
        return json_answer({"error": exc.text or exc.reason}, status=exc.status)
    except RequestError as exc:
        return json_answer({"error": str(exc)}, status=400)
    except BackendError as exc:
        return json_answer({"error": str(exc)}, status=503)
    except Exception:
        logger.exception("request failed", extra={"route": _route(request)})
        return json_answer({"error": "internal error; see the log"}, status=500)


def _measured(metrics: ServiceMetrics) -> Middleware:
    @web.middleware
    async def measure(request: web.Request, handler: Handler) -> web.StreamResponse:
        began = time.perf_counter()
        with request.app[_IN_FLIGHT]:
            response = await handler(request)
        route = _route(request)
        metrics.requests.labels(route, str(response.status)).inc()
        metrics.request_seconds.labels(route).observe(time.perf_counter() - began)
        return response

    return measure


def _closing_while_draining(health: Health) -> Middleware:
    @web.middleware
    async def close(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        if health.is_draining:
            response.force_close()
        return response

    return close


def _route(request: web.Request) -> str:
    """Return the pattern of the route, not the path: label values must be bounded."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else "unknown"
