"""The certificates in a Secret that all replicas share, followed by a watch.

A mounted Secret is updated up to a minute late, a watched one at once. A Secret that cannot be used
changes nothing and is logged. Until the first one is usable, the webhook serves with a certificate
that no client trusts, so that probes are answered, and it is not ready.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from certs.clients import SCHEDULER
from certs.issuance import issue_ca, issue_serving
from certs.rotation import Certificates, WantedCertificate, read_files
from certs.tls import build_context_of, use_pair
from kube.api.client import Object
from kube.api.secrets import read_secret

logger = logging.getLogger(__name__)

WEBHOOK: Final = "webhook"
EXTENDER: Final = "extender"


def wanted_certificates(namespace: str) -> tuple[WantedCertificate, ...]:
    """Return the certificates of an installation: two servers, and the extender's client."""
    here = ("localhost", "127.0.0.1")
    return (
        WantedCertificate(WEBHOOK, (f"cellgate-webhook.{namespace}.svc", *here)),
        WantedCertificate(EXTENDER, (f"cellgate-extender.{namespace}.svc", *here)),
        WantedCertificate(SCHEDULER),
    )


class SharedCertificates:
    """The sink of the feed that watches the Secret."""

    def __init__(
        self, *, now: datetime, on_first: Callable[[], None], client_ca: Path | None = None
    ) -> None:
        untrusted = issue_serving(issue_ca(now=now), hosts=["localhost"], now=now)
        self.context: ssl.SSLContext = build_context_of(untrusted, client_ca=client_ca)
        self.changed = asyncio.Event()
        """Set at every change of the Secret; wakes the renewer."""
        self.known: Certificates | None = None
        """What was read last; a deleted Secret is restored from it."""
        self._on_first = on_first

    def replace(self, objects: Sequence[Object]) -> None:
        """Use what a list returned."""
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Object) -> None:
        """Serve with the certificates of the Secret."""
        self.changed.set()
        try:
            certificates = read_files(read_secret(obj).files)
            use_pair(self.context, certificates.others[WEBHOOK])
        except (ValueError, KeyError) as exc:
            logger.error("certificates not usable", extra={"error": str(exc)})
            return
        if certificates != self.known:
            logger.info("certificates loaded")
        self.known = certificates
        self._on_first()

    def remove(self, obj: Object) -> None:
        """Keep serving with the last ones."""
        self.changed.set()
