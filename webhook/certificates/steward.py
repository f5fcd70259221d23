"""The leader's care for certificates: made and renewed in a Secret, handed to whoever needs them.

    the Secret of everything   all CAs with their keys: read by the webhooks only
    the Secrets of others      what one server or caller needs: mounted by its pods
    caBundle                   of our webhook configurations: whom the API server believes

Replicas serve what the Secret says; only the leader writes, and only over what it has read. The API
server is told of a CA before anything signed by it is served, and told again at once when somebody
changes our configurations. To have a new CA, as after a leak, annotate the Secret with
`cellgate.io/renew: ca`; what is deleted or damaged comes back as it was.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
from webhook.certificates.shared import EXTENDER, SharedCertificates, wanted_certificates

logger = logging.getLogger(__name__)

LEADERSHIP: Final = "cellgate-webhook"
_LOOK_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 1.0
_HEARD_SECONDS: Final = 2.0
_NEW_CA: Final = "ca"


@dataclass(frozen=True, slots=True, kw_only=True)
class StewardSettings:
    """Where certificates are kept, and how long two CAs overlap."""

    namespace: str
    secret: str
    overlap: timedelta
    copies: Mapping[str, str] = field(
        default_factory=lambda: {
            EXTENDER: "cellgate-extender-certs",
            SCHEDULER: "cellgate-scheduler-certs",
        }
    )
    """Which certificate is copied to which Secret."""


class Steward:
    """Looks after certificates for as long as we lead."""

    def __init__(
        self,
        client: KubeClient,
        settings: StewardSettings,
        *,
        leadership: Leadership,
        shared: SharedCertificates,
        utc_now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._settings = settings
        self._leadership = leadership
        self._shared = shared
        self._secrets = Secrets(client, namespace=settings.namespace)
        self._utc_now = utc_now

    async def run(self) -> NoReturn:
        """Wait for leadership, look after everything, and again when it was lost."""
        while True:
            await self._leadership.acquire()
            try:
                async with asyncio.TaskGroup() as group:
                    tending = group.create_task(self._tend_until_lost())
                    await self._leadership.keep()
                    tending.cancel()
            finally:
                await self._leadership.resign()

    async def _tend_until_lost(self) -> None:
        while True:
            self._shared.changed.clear()
            try:
                pause = await self.tend()
            except Exception as exc:
                # Whatever it is: certificates last for months, and leader after leader would die.
                is_known = isinstance(exc, KubeError | ValueError)
                extra = {"error": str(exc)}
                logger.warning("certificates not looked after", extra=extra, exc_info=not is_known)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            await wait_up_to(pause, self._shared.changed)

    async def tend(self) -> float:
        """Bring everything one step on; return in how many seconds to look again."""
        name = self._settings.secret
        secret = await self._secrets.load(name)
        known = self._read(secret)
        if known is not None and await self._publish(known):
            # Nothing is renewed before API servers had time to hear of it.
            await asyncio.sleep(_HEARD_SECONDS)
        renewed = renew(
            known,
            wanted=wanted_certificates(self._settings.namespace),
            now=self._utc_now(),
            overlap=self._settings.overlap,
            wants_new_ca=secret.annotations.get(RENEW_ANNOTATION) == _NEW_CA,
        )
        if renewed.to_files() != secret.files:
            if not self._leadership.is_leading:
                return _RETRY_SECONDS  # nobody must believe what was not saved
            await self._secrets.save(name, renewed.to_files(), over=secret)
            logger.info("certificates renewed", extra={"authorities": len(renewed.trusted)})
        await self._publish(renewed)
        await self._copy(renewed)
        is_settled = len(renewed.trusted) == 1
        return _LOOK_SECONDS if is_settled else min(_LOOK_SECONDS, self._overlap_seconds / 2)

    @property
    def _overlap_seconds(self) -> float:
        return max(1.0, self._settings.overlap.total_seconds())

    def _read(self, secret: Secret) -> Certificates | None:
        """Return what the Secret holds; what it held before, if it is gone or damaged.

        None if nobody remembers: then all is made anew, since nothing could be served.
        """
        if not secret.files:
            return self._shared.known
        try:
            return read_files(secret.files)
        except ValueError as exc:
            logger.error("certificates damaged: restoring them", extra={"error": str(exc)})
            return self._shared.known

    async def _publish(self, certificates: Certificates) -> bool:
        """Tell the API server whom to believe; True if that was news."""
        published = [
            kind
            for kind in webhook_configurations.KINDS
            if await webhook_configurations.publish_bundle(self._client, kind, certificates.bundle)
        ]
        if published:
            logger.info("caBundle published", extra={"kinds": published})
        return bool(published)

    async def _copy(self, certificates: Certificates) -> None:
        for certificate, name in self._settings.copies.items():
            secret = await self._secrets.load(name)
            files = certificates.files_of(certificate)
            if secret.files != files and self._leadership.is_leading:
                await self._secrets.save(name, files, over=secret)


class ConfigurationSink:
    """Wakes the steward when somebody has changed one of our configurations."""

    def __init__(self, changed: asyncio.Event) -> None:
        self._changed = changed

    def replace(self, objects: Sequence[Object]) -> None:
        """All there are."""
        self._changed.set()

    def upsert(self, obj: Object) -> None:
        """One was changed."""
        self._changed.set()

    def remove(self, obj: Object) -> None:
        """One is gone: nothing to do for us."""
