"""Where a webhook gets its certificates: files in a directory, or a Secret that replicas share."""

import ssl
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Final

from certs.serving_certificates import ServingCertificates, follow_client_ca
from certs.store import CertificateStore
from kube.api.client import KubeClient
from kube.api.feed import FeedSource, Sink
from kube.api.leadership import Leadership, LeadershipSettings
from kube.api.secrets import Secrets
from kube.api.webhook_configurations import GROUP, KINDS, NAME
from service.clock import Clock
from service.health import Health
from webhook.certificates.renewer import (
    LEADERSHIP,
    CertificateRenewer,
    WebhookConfigurationSink,
)
from webhook.certificates.shared_certificates import SharedCertificates
from webhook.settings import WebhookSettings

_CERTIFICATES: Final = "certificates"
_SHARED: Final = f"{_CERTIFICATES} to serve with"

_Task = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvidedCertificates:
    """What a webhook serves with, and what keeps it current."""

    context: ssl.SSLContext
    """The TLS context of the server."""
    tasks: Mapping[str, _Task]
    """Background tasks, by name."""
    sources: Mapping[str, FeedSource] = field(default_factory=dict)
    """Objects to watch, by name."""
    conditions: tuple[str, ...] = ()
    """What must be met before the webhook is ready."""


def build_certificates(
    settings: WebhookSettings, *, client: KubeClient, clock: Clock, health: Health
) -> ProvidedCertificates:
    """Choose by the settings."""
    if settings.secret is not None:
        return _from_secret(settings.secret, settings, client=client, clock=clock, health=health)
    assert settings.certificates is not None
    certificates = ServingCertificates(
        CertificateStore(settings.certificates),
        hosts=settings.hosts,
        clients=[],
        client_ca=settings.client_ca,
        utc_now=clock.now,
    )
    return ProvidedCertificates(
        context=certificates.context, tasks={_CERTIFICATES: certificates.run}
    )


def _from_secret(
    name: str, settings: WebhookSettings, *, client: KubeClient, clock: Clock, health: Health
) -> ProvidedCertificates:
    """Serve with the certificates of a Secret, and renew them while this replica leads."""
    shared = SharedCertificates(
        now=clock.now(), client_ca=settings.client_ca, on_first=partial(health.meet, _SHARED)
    )
    term = LeadershipSettings(
        name=LEADERSHIP, namespace=settings.namespace, identity=settings.identity
    )
    renewer = CertificateRenewer(
        client,
        namespace=settings.namespace,
        secret=name,
        overlap=timedelta(seconds=settings.ca_overlap_seconds),
        leadership=Leadership(client, term, monotonic=clock.monotonic, utc_now=clock.now),
        shared=shared,
        utc_now=clock.now,
    )
    tasks: dict[str, _Task] = {"certificate renewal": renewer.run}
    if settings.client_ca is not None:
        tasks["client CA"] = partial(follow_client_ca, shared.context, settings.client_ca)
    secrets = Secrets(client, namespace=settings.namespace).path
    sources = {_CERTIFICATES: _source_of(name, path=secrets, sink=shared)}
    configurations = WebhookConfigurationSink(shared.changed)
    for kind in KINDS:
        sources[kind] = _source_of(NAME, path=f"{GROUP}/{kind}", sink=configurations)
    return ProvidedCertificates(
        context=shared.context, tasks=tasks, sources=sources, conditions=(_SHARED,)
    )


def _source_of(name: str, *, path: str, sink: Sink) -> FeedSource:
    """Follow one object: RBAC allows to watch it by name only."""
    return FeedSource(path=path, sink=sink, query={"fieldSelector": f"metadata.name={name}"})
