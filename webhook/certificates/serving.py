"""Certificates of a running webhook: files that are followed, or a Secret that replicas share."""

import ssl
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Final

from certs.serving import ServingCertificates, follow_client_ca
from certs.store import CertificateStore
from kube.api import webhook_configurations
from kube.api.client import KubeClient
from kube.api.feed import FeedSource
from kube.api.leadership import Leadership, LeadershipSettings
from kube.api.secrets import Secrets
from service.clock import Clock
from service.health import Health
from service.tasks import Supervisor
from webhook.certificates.shared import SharedCertificates
from webhook.certificates.steward import LEADERSHIP, ConfigurationSink, Steward, StewardSettings
from webhook.settings import WebhookSettings

CERTIFICATES: Final = "certificates"


class FileServing:
    """Serves with what a directory holds."""

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
        """What to listen with."""
        return self._certificates.context

    def sources(self) -> Mapping[str, FeedSource]:
        """Files are no objects of the cluster."""
        return {}

    def start(self, supervisor: Supervisor) -> None:
        """Follow the files."""
        supervisor.start(CERTIFICATES, self._certificates.run())


class SecretServing:
    """Serves with what a Secret holds, and looks after it while this replica leads."""

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
        self._steward = Steward(
            client,
            StewardSettings(
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
        """What to listen with."""
        return self._shared.context

    def sources(self) -> Mapping[str, FeedSource]:
        """Say what to follow: by name, since we have the right to no other."""
        path = Secrets(self._client, namespace=self._settings.namespace).path
        changes = ConfigurationSink(self._shared.changed)
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
        """Run for leadership, and follow the file by which callers are known."""
        supervisor.start("certificate steward", self._steward.run())
        if self._settings.client_ca is not None:
            following = follow_client_ca(self.context, self._settings.client_ca)
            supervisor.start("client CA", following)


def build_serving(
    settings: WebhookSettings, *, client: KubeClient, clock: Clock, health: Health
) -> FileServing | SecretServing:
    """Choose as the settings say."""
    if settings.secret is not None:
        return SecretServing(settings, client=client, clock=clock, health=health)
    return FileServing(settings, clock)
