"""Runs the webhook: feeds, reviews, certificates, routes."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from kube.api.client import KubeClient
from kube.api.events import EventWriter
from kube.api.feed import Feed
from kube.follow.policies import PolicySink
from service.collecting import settle_collector
from service.health import Health
from service.http import build_app
from service.metrics import ServiceMetrics
from service.running import RunningService, running
from state.ledger.ledger import Ledger
from state.log.log import DecisionLog
from state.log.metrics import LogMetrics
from webhook.admission.memory_decider import LiveUsage
from webhook.certificates.callers import demand_certificates
from webhook.certificates.serving import build_serving
from webhook.cluster_view import ClusterView, Source
from webhook.metrics import WebhookMetrics
from webhook.routes import ReviewRoutes
from webhook.settings import WebhookSettings
from webhook.wiring import State, build_reviews

__all__ = ["WebhookSettings", "run_webhook"]

# The API server takes 3 MB and stores 1.5 MB; in a review, which may carry one of each, every `<`
# has six bytes. More than we take is a failed call, with which a fail-open overlay lets a pod pass.
_MAX_BODY_BYTES = 32 * 2**20


@asynccontextmanager
async def run_webhook(
    settings: WebhookSettings,
    *,
    client: KubeClient,
    log: DecisionLog,
    ledger: Ledger,
    usage: LiveUsage,
) -> AsyncIterator[RunningService]:
    """Run a webhook while the body runs; its health says when it is ready."""
    settings.check()
    metrics = ServiceMetrics()
    LogMetrics(metrics.registry, log)
    webhook_metrics, events = WebhookMetrics(metrics.registry), EventWriter(client)
    view = ClusterView(policies=PolicySink(events))
    webhook_metrics.policy_problems.set_function(lambda: len(view.policies.problems))
    health = Health()
    serving = build_serving(settings, client=client, health=health)
    sources = {**view.sources(settings.namespace), **serving.sources()}
    health.expect(*(f"{name} synced" for name in sources), *serving.conditions)
    reviews = build_reviews(
        settings,
        view=view,
        state=State(ledger=ledger, usage=usage, log=log),
        client=client,
        events=events,
        metrics=webhook_metrics,
    )
    app = build_app(
        health=health,
        metrics=metrics,
        max_body_bytes=_MAX_BODY_BYTES,
        guard=demand_certificates(settings.client_names) if settings.client_ca else None,
    )
    ReviewRoutes(reviews, health).add_to(app)
    async with running(
        app,
        name="webhook",
        health=health,
        address=settings.address,
        tls=serving.context,
        linger_seconds=settings.linger_seconds,
    ) as webhook:
        serving.start(webhook.supervisor)
        for name, source in sources.items():
            feed = _feed(client, source, on_synced=partial(_meet, health, f"{name} synced"))
            webhook.supervisor.start(f"{name} feed", feed.run())
        webhook.supervisor.start("events", events.run())
        webhook.supervisor.start("ledger probe", reviews.breaker.run())
        webhook.supervisor.start("recent gangs", reviews.recent.run())
        yield webhook


def _meet(health: Health, condition: str) -> None:
    """Take note of what is there; with the last of it, before anybody is answered, settle."""
    if health.unmet == (condition,):
        settle_collector()
    health.meet(condition)


def _feed(client: KubeClient, source: Source, *, on_synced: Callable[[], None]) -> Feed:
    return Feed(
        client,
        source.path,
        sink=source.sink,
        query=source.query,
        on_synced=on_synced,
        is_optional=source.is_optional,
    )
