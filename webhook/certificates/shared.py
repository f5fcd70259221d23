"""What a webhook serves with, from a Secret that all replicas share, followed by a watch.

A Secret that is mounted comes up to a minute late; one that is watched comes at once. What cannot
be used changes nothing and is told. Until there is a first one we serve with a certificate that
nobody trusts, so that probes are answered, and are not ready.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from certs.clients import SCHEDULER
from certs.issue import issue_ca, issue_serving
from certs.rotation import Certificates, Wanted, read_files
from certs.tls import build_context_of, use_pair
from kube.api.client import Object
from kube.api.secrets import read_secret

logger = logging.getLogger(__name__)

WEBHOOK: Final = "webhook"
EXTENDER: Final = "extender"


def wanted_certificates(namespace: str) -> tuple[Wanted, ...]:
    """Name what an installation needs: two servers, and who calls the extender."""
    here = ("localhost", "127.0.0.1")
    return (
        Wanted(WEBHOOK, (f"cellgate-webhook.{namespace}.svc", *here)),
        Wanted(EXTENDER, (f"cellgate-extender.{namespace}.svc", *here)),
        Wanted(SCHEDULER),
    )


class SharedCertificates:
    """A sink of the feed that follows the Secret."""

    def __init__(
        self, *, now: datetime, on_first: Callable[[], None], client_ca: Path | None = None
    ) -> None:
        nobody = issue_serving(issue_ca(now=now), hosts=["localhost"], now=now)
        self.context: ssl.SSLContext = build_context_of(nobody, client_ca=client_ca)
        self.changed = asyncio.Event()
        """Set at every change of the Secret, for whoever looks after it."""
        self.known: Certificates | None = None
        """What was read last: also what a Secret that somebody deleted is made from again."""
        self._on_first = on_first

    def replace(self, objects: Sequence[Object]) -> None:
        """All there is."""
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Object) -> None:
        """Serve with what the Secret holds now."""
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
        """Go on with what we have."""
        self.changed.set()
