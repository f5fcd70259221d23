"""Runs one webhook: feeds, reviews, certificates, routes."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry

from kube.api.client import KubeClient
from kube.api.events import EventWriter
from kube.api.feed import Feed, FeedSource
from kube.follow.pod_groups import PodGroupFollower
from kube.follow.policies import PolicySink
from service.clock import Clock
from service.garbage import settle_collector
from service.health import Health
from service.http import build_app
from service.metrics import ServiceMetrics
from service.runner import RunningService, run_service
from state.log.metrics import LogMetrics
from webhook.admission.memory_decider import LiveUsage
from webhook.certificates.callers import require_client_certificate
from webhook.certificates.provider import build_certificates
from webhook.cluster_view import ClusterView
from webhook.leaderless_pods import LeaderlessPods, build_election
from webhook.metrics import WebhookMetrics
from webhook.quota_metrics import QuotaMetrics
from webhook.routes import add_routes
from webhook.settings import WebhookSettings
from webhook.wiring import WebhookReviews, WebhookState, build_reviews

__all__ = ["WebhookSettings", "WebhookState", "run_webhook"]

# The API server accepts objects of 3 MB and stores 1.5 MB. A review may carry one of each, with six
# bytes for every `<`. A larger body is a failed call, which a fail-open overlay lets pass.
_MAX_BODY_BYTES = 32 * 2**20
_POD_GROUPS: Final = "PodGroups synced"


@asynccontextmanager
async def run_webhook(
    settings: WebhookSettings,
    *,
    client: KubeClient,
    state: WebhookState,
) -> AsyncIterator[RunningService]:
    """Run a webhook while the body runs; its health says when it is ready."""
    settings.check()
    clock, metrics = Clock(), ServiceMetrics()
    LogMetrics(metrics.registry, state.log)
    events = EventWriter(client, clock)
    view = ClusterView(policies=PolicySink(events), pod_groups=PodGroupFollower(client, clock))
    webhook_metrics = _build_metrics(metrics.registry, policies=view.policies, usage=state.usage)
    health = Health()
    serving = build_certificates(settings, client=client, clock=clock, health=health)
    sources = {**view.sources(settings.namespace), **serving.sources}
    health.expect(*(f"{name} synced" for name in sources), _POD_GROUPS, *serving.conditions)
    reviews = build_reviews(
        settings,
        view=view,
        state=state,
        client=client,
        clock=clock,
        events=events,
        metrics=webhook_metrics,
    )
    app = _build_app(settings, reviews, health=health, metrics=metrics)
    async with run_service(
        app,
        name="webhook",
        health=health,
        address=settings.address,
        tls=serving.context,
        linger_seconds=settings.linger_seconds,
    ) as webhook:
        _start_feeds(webhook, sources, client=client, clock=clock, health=health)
        _follow_view(webhook, view, clock=clock, health=health)
        watch = _build_watch(settings, client=client, events=events, clock=clock)
        tasks = {"events": events.run, **serving.tasks, **reviews.tasks}
        tasks |= {} if watch is None else {"leader of the extenders": watch.run}
        for name, run in tasks.items():
            webhook.supervisor.start(name, run())
        yield webhook


def _build_app(
    settings: WebhookSettings, reviews: WebhookReviews, *, health: Health, metrics: ServiceMetrics
) -> web.Application:
    app = build_app(
        health=health,
        metrics=metrics,
        max_body_bytes=_MAX_BODY_BYTES,
        guard=require_client_certificate(settings.client_names) if settings.client_ca else None,
    )
    add_routes(app, reviews, health)
    return app


def _build_metrics(
    registry: CollectorRegistry, *, policies: PolicySink, usage: LiveUsage
) -> WebhookMetrics:
    metrics = WebhookMetrics(registry)
    metrics.policy_problems.set_function(lambda: len(policies.problems))
    QuotaMetrics(registry, usage=usage, policy=lambda: policies.policy)
    return metrics


def _start_feeds(
    webhook: RunningService,
    sources: Mapping[str, FeedSource],
    *,
    client: KubeClient,
    clock: Clock,
    health: Health,
) -> None:
    for name, source in sources.items():
        met = partial(_meet, health, f"{name} synced")
        feed = Feed(client, source, clock=clock, on_synced=met)
        webhook.supervisor.start(f"{name} feed", feed.run())


def _follow_view(
    webhook: RunningService, view: ClusterView, *, clock: Clock, health: Health
) -> None:
    groups = view.pod_groups.run(on_synced=partial(_meet, health, _POD_GROUPS))
    webhook.supervisor.start("PodGroups", groups)
    webhook.supervisor.start("policy expiry", view.policies.follow_time(clock))


def _build_watch(
    settings: WebhookSettings, *, client: KubeClient, events: EventWriter, clock: Clock
) -> LeaderlessPods | None:
    if not settings.identity:
        return None  # `cellgate run` has no leadership
    namespace, identity = settings.namespace, settings.identity
    election = build_election(client, namespace=namespace, identity=identity, clock=clock)
    return LeaderlessPods(
        client, namespace=namespace, election=election, events=events, clock=clock
    )


def _meet(health: Health, condition: str) -> None:
    """Mark a condition as met; before the last one, settle the garbage collector."""
    if health.unmet == (condition,):
        settle_collector()
    health.meet(condition)
