"""The leader creates and renews certificates in a Secret, and distributes them.

    the shared Secret    all CAs with their keys; read by webhooks only
    copies               the certificate of one server or client; mounted by its pods
    caBundle             of our webhook configurations: the CAs that the API server trusts

All replicas serve with the shared Secret; only the leader writes it, and only over the version it
has read. The API server trusts a CA before a certificate that it signed is served, and the caBundle
is restored at once if a user changes it. To rotate the CA, as after a leak, annotate the Secret
with `cellgate.io/renew: ca`. A deleted or damaged Secret is restored.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, NoReturn

from certs.clients import SCHEDULER
from certs.rotation import Certificates, read_files, renew
from kube.api import webhook_configurations
from kube.api.client import KubeClient, KubeError, Object
from kube.api.leadership import Leadership
from kube.api.secrets import Secret, Secrets
from kube.marks import RENEW_ANNOTATION
from service.tasks import wait_up_to
from webhook.certificates.shared_certificates import (
    EXTENDER,
    SharedCertificates,
    wanted_certificates,
)

logger = logging.getLogger(__name__)

LEADERSHIP: Final = "cellgate-webhook"
_CHECK_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 1.0
_PROPAGATION_SECONDS: Final = 2.0
_NEW_CA: Final = "ca"
_COPIES: Final = {EXTENDER: "cellgate-extender-certs", SCHEDULER: "cellgate-scheduler-certs"}
"""The Secret that each certificate is copied to."""


class CertificateRenewer:
    """Renews certificates while this replica leads."""

    def __init__(
        self,
        client: KubeClient,
        *,
        namespace: str,
        secret: str,
        overlap: timedelta,
        leadership: Leadership,
        shared: SharedCertificates,
        utc_now: Callable[[], datetime],
    ) -> None:
        """`secret` names the shared Secret; two CAs are trusted for `overlap`."""
        self._client = client
        self._secret = secret
        self._overlap = overlap
        self._leadership = leadership
        self._shared = shared
        self._secrets = Secrets(client, namespace=namespace)
        self._wanted = wanted_certificates(namespace)
        self._utc_now = utc_now

    async def run(self) -> NoReturn:
        """Renew certificates whenever this replica leads, until cancelled."""
        while True:
            await self._leadership.acquire()
            try:
                async with asyncio.TaskGroup() as group:
                    renewing = group.create_task(self._renew_while_leading())
                    await self._leadership.keep()
                    renewing.cancel()
            finally:
                await self._leadership.resign()

    async def _renew_while_leading(self) -> None:
        while True:
            self._shared.changed.clear()
            try:
                pause = await self.step()
            except Exception as exc:
                # Any error: certificates last for months, and each leader in turn would exit.
                is_known = isinstance(exc, KubeError | ValueError)
                logger.warning(
                    "certificates not renewed, will retry",
                    extra={"error": str(exc)},
                    exc_info=not is_known,
                )
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            await wait_up_to(pause, self._shared.changed)

    async def step(self) -> float:
        """Take the next step of a renewal; return the seconds until the next check."""
        secret = await self._secrets.load(self._secret)
        known = self._read(secret)
        if known is not None and await self._publish(known):
            # API servers must see the new bundle before anything is renewed.
            await asyncio.sleep(_PROPAGATION_SECONDS)
        renewed = renew(
            known,
            wanted=self._wanted,
            now=self._utc_now(),
            overlap=self._overlap,
            wants_new_ca=secret.annotations.get(RENEW_ANNOTATION) == _NEW_CA,
        )
        if renewed.to_files() != secret.files:
            if not self._leadership.is_leading:
                return _RETRY_SECONDS  # publish only what is saved
            await self._secrets.save(self._secret, renewed.to_files(), over=secret)
            logger.info("certificates renewed", extra={"authorities": len(renewed.trusted)})
        await self._publish(renewed)
        await self._copy(renewed)
        if len(renewed.trusted) == 1:
            return _CHECK_SECONDS
        return min(_CHECK_SECONDS, max(1.0, self._overlap.total_seconds()) / 2)

    def _read(self, secret: Secret) -> Certificates | None:
        """Return the certificates of the Secret; if it is gone or damaged, the last known ones.

        None if this replica has read none: then new ones are created.
        """
        if not secret.files:
            return self._shared.known
        try:
            return read_files(secret.files)
        except ValueError as exc:
            logger.error("certificates damaged, restoring them", extra={"error": str(exc)})
            return self._shared.known

    async def _publish(self, certificates: Certificates) -> bool:
        """Write the caBundle that the API server trusts; True if it has changed."""
        published = [
            kind
            for kind in webhook_configurations.KINDS
            if await webhook_configurations.publish_bundle(self._client, kind, certificates.bundle)
        ]
        if published:
            logger.info("caBundle published", extra={"kinds": published})
        return bool(published)

    async def _copy(self, certificates: Certificates) -> None:
        for certificate, name in _COPIES.items():
            secret = await self._secrets.load(name)
            files = certificates.files_of(certificate)
            if secret.files != files and self._leadership.is_leading:
                await self._secrets.save(name, files, over=secret)


class WebhookConfigurationSink:
    """Wakes the renewer when one of our webhook configurations has changed."""

    def __init__(self, changed: asyncio.Event) -> None:
        self._changed = changed

    def replace(self, objects: Sequence[Object]) -> None:
        """Check what a list returned."""
        self._changed.set()

    def upsert(self, obj: Object) -> None:
        """Check the changed configuration."""
        self._changed.set()

    def remove(self, obj: Object) -> None:
        """Ignore a deletion: there is no caBundle to restore."""
