"""HTTP as every service has it: probes, metrics, bounded bodies, errors as JSON.

`build_app` builds an aiohttp application with `/healthz`, `/readyz`, `/metrics` and the middleware
that every service has. `service.runner` serves it.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

import orjson
from aiohttp import web
from aiohttp.typedefs import Middleware
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from policy.errors import BackendError, RequestError
from service.health import Health
from service.metrics import ServiceMetrics
from service.slow_connections import SlowConnections

logger = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_BODY_SECONDS = 10.0


class RequestsInFlight:
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
IN_FLIGHT = web.AppKey("in_flight", RequestsInFlight)
SLOW = web.AppKey("slow", SlowConnections)


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
    middlewares = [_observe(health, metrics), answer_faults, *([guard] if guard else [])]
    app = web.Application(client_max_size=max_body_bytes, middlewares=middlewares)
    app[IN_FLIGHT] = RequestsInFlight()
    app[METRICS] = metrics
    app[SLOW] = SlowConnections()
    _add_probes(app, health, metrics)
    return app


def _add_probes(app: web.Application, health: Health, metrics: ServiceMetrics) -> None:
    def probe(*, is_ok: bool) -> web.Response:
        text = "ok" if is_ok else "\n".join(health.reasons())
        return web.Response(text=text + "\n", status=200 if is_ok else 503)

    async def healthz(_: web.Request) -> web.Response:
        return probe(is_ok=health.is_alive)

    async def readyz(_: web.Request) -> web.Response:
        return probe(is_ok=health.is_ready)

    async def show_metrics(_: web.Request) -> web.Response:
        metrics.ready.set(health.is_ready)
        body = generate_latest(metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", show_metrics)


@web.middleware
async def answer_faults(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer errors as JSON; an unexpected one is logged here, once, and not shown."""
    try:
        return await handler(request)
    except web.HTTPException as exc:
        return json_answer({"error": _told(exc, request)}, status=exc.status)
    except RequestError as exc:
        return json_answer({"error": str(exc)}, status=400)
    except BackendError as exc:
        return json_answer({"error": str(exc)}, status=503)
    except Exception:
        logger.exception("request failed", extra={"route": _route(request)})
        return json_answer({"error": "internal error; see the log"}, status=500)


def _told(exc: web.HTTPException, request: web.Request) -> str:
    """Return what an error says; the router's own say nothing of what to ask instead."""
    if isinstance(exc, web.HTTPMethodNotAllowed):
        return f"{exc.method} is not allowed here; use {' or '.join(sorted(exc.allowed_methods))}"
    if request.match_info.http_exception is not exc:
        return exc.text or exc.reason
    known = {resource.canonical for resource in request.app.router.resources()}
    hint = "; /openapi.json lists all paths" if "/openapi.json" in known else ""
    return f"there is no path {request.path}{hint}"


def _observe(health: Health, metrics: ServiceMetrics) -> Middleware:
    @web.middleware
    async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count and time a request; while draining, it is the last one on its connection."""
        began = time.perf_counter()
        request.app[SLOW].note(request)
        with request.app[IN_FLIGHT]:
            response = await handler(request)
        if health.is_draining:
            response.force_close()
        route = _route(request)
        metrics.requests.labels(route, str(response.status)).inc()
        metrics.request_seconds.labels(route).observe(time.perf_counter() - began)
        return response

    return observe


def _route(request: web.Request) -> str:
    """Return the pattern of the route, not the path: label values must be bounded."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else "unknown"
