"""Where a webhook gets its certificates: files in a directory, or a Secret that replicas share."""

import ssl
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Final

from certs.serving_certificates import ServingCertificates, follow_client_ca
from certs.store import CertificateStore
from kube.api import webhook_configurations
from kube.api.client import KubeClient
from kube.api.feed import FeedSource
from kube.api.leadership import Leadership, LeadershipSettings
from kube.api.secrets import Secrets
from service.clock import Clock
from service.health import Health
from service.tasks import Supervisor
from webhook.certificates.renewer import (
    LEADERSHIP,
    CertificateRenewer,
    RenewerSettings,
    WebhookConfigurationSink,
)
from webhook.certificates.shared_certificates import SharedCertificates
from webhook.settings import WebhookSettings

CERTIFICATES: Final = "certificates"


class DirectoryCertificates:
    """Serves with the certificates of a directory."""

    conditions: tuple[str, ...] = ()

    def __init__(self, settings: WebhookSettings, clock: Clock) -> None:
        assert settings.certificates is not None
        self._certificates = ServingCertificates(
            CertificateStore(settings.certificates),
            hosts=settings.hosts,
            clients=[],
            client_ca=settings.client_ca,
            utc_now=clock.now,
        )

    @property
    def context(self) -> ssl.SSLContext:
        """The TLS context of the server."""
        return self._certificates.context

    def sources(self) -> Mapping[str, FeedSource]:
        """No objects to watch."""
        return {}

    def start(self, supervisor: Supervisor) -> None:
        """Watch the files."""
        supervisor.start(CERTIFICATES, self._certificates.run())


class SecretCertificates:
    """Serves with the certificates of a Secret, and renews them while this replica leads."""

    conditions = (f"{CERTIFICATES} to serve with",)

    def __init__(
        self, settings: WebhookSettings, *, client: KubeClient, clock: Clock, health: Health
    ) -> None:
        assert settings.secret is not None
        self._settings = settings
        self._client = client
        self._shared = SharedCertificates(
            now=clock.now(),
            client_ca=settings.client_ca,
            on_first=partial(health.meet, self.conditions[0]),
        )
        term = LeadershipSettings(
            name=LEADERSHIP, namespace=settings.namespace, identity=settings.identity
        )
        self._renewer = CertificateRenewer(
            client,
            RenewerSettings(
                namespace=settings.namespace,
                secret=settings.secret,
                overlap=timedelta(seconds=settings.ca_overlap_seconds),
            ),
            leadership=Leadership(client, term, monotonic=clock.monotonic, utc_now=clock.now),
            shared=self._shared,
            utc_now=clock.now,
        )

    @property
    def context(self) -> ssl.SSLContext:
        """The TLS context of the server."""
        return self._shared.context

    def sources(self) -> Mapping[str, FeedSource]:
        """Return the objects to watch, by name: RBAC allows no others."""
        path = Secrets(self._client, namespace=self._settings.namespace).path
        changes = WebhookConfigurationSink(self._shared.changed)
        return {
            CERTIFICATES: FeedSource(
                path=path,
                sink=self._shared,
                query={"fieldSelector": f"metadata.name={self._settings.secret}"},
            ),
            **{
                kind: FeedSource(
                    path=f"{webhook_configurations.GROUP}/{kind}",
                    sink=changes,
                    query={"fieldSelector": f"metadata.name={webhook_configurations.NAME}"},
                )
                for kind in webhook_configurations.KINDS
            },
        }

    def start(self, supervisor: Supervisor) -> None:
        """Join the leader election, and watch the file of the client CA."""
        supervisor.start("certificate renewal", self._renewer.run())
        if self._settings.client_ca is not None:
            following = follow_client_ca(self.context, self._settings.client_ca)
            supervisor.start("client CA", following)


def build_certificates(
    settings: WebhookSettings, *, client: KubeClient, clock: Clock, health: Health
) -> DirectoryCertificates | SecretCertificates:
    """Choose by the settings."""
    if settings.secret is not None:
        return SecretCertificates(settings, client=client, clock=clock, health=health)
    return DirectoryCertificates(settings, clock)
