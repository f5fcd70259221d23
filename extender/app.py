"""Puts the extender together: feeds, engine, log, routes."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from extender.cells.engine import Engine
from extender.cluster import NodeSink, PodSink
from extender.metrics import ExtenderMetrics
from extender.routes import InspectionRoutes, VerbRoutes
from extender.service import ExtenderService
from kube.binding import Binder
from kube.client import KubeClient
from kube.feed import Feed, Sink
from policy.errors import SettingsError
from service.clock import Clock
from service.health import Health
from service.http import build_app
from service.metrics import ServiceMetrics
from service.running import RunningService, running
from service.settings import Address
from state.log import DecisionLog
from state.log_metrics import LogMetrics

logger = logging.getLogger(__name__)

# 5,000 whole nodes of some kilobytes each, with room to spare.
_MAX_BODY_BYTES = 64 * 2**20
_EXPIRE_EVERY_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderSettings:
    """How one extender runs."""

    address: Address
    lease_seconds: float = 60.0
    """How long unbound places stay held; too short, and a slow gang never gets together."""
    allows_insecure_http: bool = False
    """Serve plain HTTP beyond loopback: whoever reaches the address can then bind pods."""

    def check(self) -> None:
        """Raise SettingsError for settings that are not safe."""
        if not self.address.is_loopback and not self.allows_insecure_http:
            raise SettingsError(
                f"{self.address.flag} {self.address} is not loopback, and the extender's verbs can "
                "bind pods: listen on 127.0.0.1, or run `cellgate extender` with --insecure-http"
            )


@asynccontextmanager
async def run_extender(
    settings: ExtenderSettings, *, client: KubeClient, log: DecisionLog
) -> AsyncIterator[RunningService]:
    """Run an extender while the body runs; its health says when it is ready."""
    settings.check()
    clock = Clock()
    engine = Engine(lease_seconds=settings.lease_seconds)
    sinks: dict[str, Sink] = {"nodes": NodeSink(engine), "pods": (pods := PodSink(engine))}
    health = Health(_synced(kind) for kind in sinks)
    metrics = ServiceMetrics()
    LogMetrics(metrics.registry, log)
    service = ExtenderService(
        engine=engine,
        pods=pods,
        binder=Binder(client),
        log=log,
        metrics=ExtenderMetrics(metrics.registry, engine),
        clock=clock,
    )
    app = build_app(health=health, metrics=metrics, max_body_bytes=_MAX_BODY_BYTES)
    VerbRoutes(service, health).add_to(app)
    InspectionRoutes(engine=engine, log=log, health=health).add_to(app)
    async with running(app, name="extender", health=health, address=settings.address) as extender:
        feeds = {kind: _feed(client, kind, sink, health) for kind, sink in sinks.items()}
        extender.supervisor.start("nodes feed", feeds["nodes"].run())
        # Pods after nodes: a pod whose node is known finds its leaf cells at once.
        extender.supervisor.start("pods feed", _run_after(feeds["nodes"], feeds["pods"]))
        extender.supervisor.start("lease expiry", _expire_leases(engine, clock))
        yield extender


def _feed(client: KubeClient, kind: str, sink: Sink, health: Health) -> Feed:
    synced = partial(health.meet, _synced(kind))
    return Feed(client, f"/api/v1/{kind}", sink=sink, on_synced=synced)


async def _run_after(first: Feed, second: Feed) -> None:
    await first.synced.wait()
    await second.run()


def _synced(kind: str) -> str:
    return f"{kind} synced"


async def _expire_leases(engine: Engine, clock: Clock) -> None:
    while True:
        await asyncio.sleep(_EXPIRE_EVERY_SECONDS)
        for gang in engine.expire(now=clock.monotonic()):
            logger.info("lease expired", extra={"gang": str(gang)})
