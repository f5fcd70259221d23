"""Puts the webhook together: feeds, policy, log, certificates, routes."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from certs.store import CertificateStore
from certs.tls import build_server_context
from kube import marks, podgroups
from kube import priorities as kube_priorities
from kube.client import KubeClient
from kube.events import EventWriter
from kube.feed import Feed, Sink
from kube.podgroups import PodGroupSink
from kube.policies import PolicySink
from kube.priorities import PrioritySink
from service.clock import Clock
from service.health import Health
from service.http import build_app
from service.metrics import ServiceMetrics
from service.running import RunningService, running
from service.settings import Address
from state.ledger import Ledger
from state.log import DecisionLog
from state.log_metrics import LogMetrics
from webhook.admitting import Admitter, LiveUsage
from webhook.answers import AnswerSettings
from webhook.breaker import Breaker
from webhook.guarding import PodGuard
from webhook.metrics import WebhookMetrics
from webhook.namespaces import NamespaceSink
from webhook.notes import DecisionNotes
from webhook.podgroup_reviews import PodGroupReviews
from webhook.podgroups import PodGroups
from webhook.pods import PodReviews
from webhook.policies import DEFAULT_ADMINS, PolicyReviews
from webhook.policy_watcher import PolicyWatcher
from webhook.recent import RecentGangs
from webhook.routes import ReviewRoutes
from webhook.templates import TemplateReviews
from webhook.told import ToldPods

# An object of the API server has at most 3 MB, and a review may carry two of them.
_MAX_BODY_BYTES = 8 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """How one webhook runs."""

    address: Address
    certificates: Path
    """Directory of CA and serving certificate; made when missing."""
    namespace: str = "cellgate-system"
    """Where the policy documents are, and our own Service."""
    admins: tuple[str, ...] = DEFAULT_ADMINS
    """Users and groups who may change every policy document."""
    gates_all: bool = False
    """Whether every gang waits for the planner."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names by which the API server may call us."""
        service = f"cellgate-webhook.{self.namespace}.svc"
        return self.address.host, "localhost", "127.0.0.1", service


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
    certificates = CertificateStore(settings.certificates)
    certificates.ensure(hosts=settings.hosts, now=datetime.now(UTC))
    metrics = ServiceMetrics()
    LogMetrics(metrics.registry, log)
    webhook_metrics = WebhookMetrics(metrics.registry)
    events = EventWriter(client)
    watcher = PolicyWatcher(webhook_metrics, events, namespace=settings.namespace)
    policies, namespaces = PolicySink(watcher.on_change), NamespaceSink()
    pod_groups, priorities = PodGroupSink(), PrioritySink()
    feeds = {
        **_policy_feeds(settings.namespace, policies, priorities),
        **_pod_feeds(namespaces, pod_groups),
    }
    health = Health(f"{name} synced" for name in feeds)
    clock = Clock()
    admitter = Admitter(
        ledger=ledger,
        usage=usage,
        breaker=Breaker(monotonic=clock.monotonic),
        recent=RecentGangs(monotonic=clock.monotonic),
    )
    told = ToldPods(events)
    pods = PodReviews(
        policies=policies,
        namespaces=namespaces,
        groups=PodGroups(pod_groups, client),
        admitter=admitter,
        notes=DecisionNotes(log=log, metrics=webhook_metrics, told=told, clock=clock),
        clock=clock,
        settings=AnswerSettings(gates_all=settings.gates_all),
    )
    app = build_app(health=health, metrics=metrics, max_body_bytes=_MAX_BODY_BYTES)
    ReviewRoutes(
        pods=pods,
        guard=PodGuard(told=told, namespace=settings.namespace, admins=settings.admins),
        templates=TemplateReviews(
            policies=policies,
            pods=pods,
            groups=PodGroupReviews(policies=policies, namespaces=namespaces, admitter=admitter),
        ),
        policies=PolicyReviews(
            policies, priorities=priorities, ledger=ledger, admins=settings.admins
        ),
        health=health,
    ).add_to(app)
    tls = build_server_context(*certificates.serving_paths)
    async with running(
        app, name="webhook", health=health, address=settings.address, tls=tls
    ) as webhook:
        for name, feed in feeds.items():
            synced = partial(health.meet, f"{name} synced")
            work = Feed(
                client,
                feed.path,
                sink=feed.sink,
                query=feed.query,
                on_synced=synced,
                is_optional=feed.is_optional,
            )
            webhook.supervisor.start(f"{name} feed", work.run())
        webhook.supervisor.start("events", events.run())
        yield webhook


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    path: str
    sink: Sink
    query: Mapping[str, str] = field(default_factory=dict)
    is_optional: bool = False


def _policy_feeds(
    namespace: str, policies: PolicySink, priorities: PrioritySink
) -> dict[str, _Source]:
    return {
        "policies": _Source(
            path=f"/api/v1/namespaces/{namespace}/configmaps",
            sink=policies,
            query={"labelSelector": marks.POLICY_LABEL},
        ),
        "priority classes": _Source(path=kube_priorities.PATH, sink=priorities),
    }


def _pod_feeds(namespaces: NamespaceSink, pod_groups: PodGroupSink) -> dict[str, _Source]:
    return {
        "namespaces": _Source(path="/api/v1/namespaces", sink=namespaces),
        "pod groups": _Source(path=podgroups.PATH, sink=pod_groups, is_optional=True),
    }
