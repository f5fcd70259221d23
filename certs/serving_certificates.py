"""The certificates of a running server, renewed and reloaded without a restart.

Certificates are renewed here unless their directory is given, like a mounted Secret. New handshakes
use the current content of the files. A CA that is added to `ca.crt` is trusted at once; a CA that
is removed is trusted until the process restarts.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from certs.store import CertificateStore
from certs.tls import build_server_context
from policy.errors import SettingsError

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0


class ServingCertificates:
    """The certificate of one server, and the CA of its callers."""

    def __init__(
        self,
        store: CertificateStore,
        *,
        hosts: Sequence[str],
        clients: Sequence[str],
        utc_now: Callable[[], datetime],
        client_ca: Path | None = None,
    ) -> None:
        """Verify client certificates with the CA in `client_ca`; without it there are none."""
        self._store = store
        self._client_ca = client_ca
        self._hosts = hosts
        self._clients = clients
        self._utc_now = utc_now
        self._contents = self._renew()
        self.context = self._build()

    async def run(self, *, look_seconds: float = _LOOK_SECONDS) -> None:
        """Reload changed files until cancelled; log and ignore files that cannot be used."""
        while True:
            await asyncio.sleep(look_seconds)
            try:
                contents = await asyncio.to_thread(self._renew)
                if contents != self._contents:
                    self._reload()
                    self._contents = contents
                    logger.info("certificates reloaded")
            except (OSError, SettingsError) as exc:
                logger.warning("certificates not reloaded", extra={"error": str(exc)})

    def _renew(self) -> list[bytes]:
        """Renew the files unless they are given, and read them; `_build` reports missing ones."""
        if not self._store.is_given:
            self._store.ensure(hosts=self._hosts, clients=self._clients, now=self._utc_now())
        paths = (self._store.ca_path, *self._store.serving_paths, self._client_ca)
        return [path.read_bytes() for path in paths if path is not None and path.exists()]

    def _build(self) -> ssl.SSLContext:
        return build_server_context(*self._store.serving_paths, client_ca=self._client_ca)

    def _reload(self) -> None:
        """Change the serving context; a trial comes first, since half a change would break it."""
        self._build()
        self.context.load_cert_chain(*self._store.serving_paths)
        if self._client_ca is not None:
            self.context.load_verify_locations(self._client_ca)


async def follow_client_ca(
    context: ssl.SSLContext, path: Path, *, look_seconds: float = _LOOK_SECONDS
) -> None:
    """Reload the CAs of callers from a file until cancelled.

    A file that cannot be used is logged and ignored.
    """
    contents = b""
    while True:
        try:
            now = await asyncio.to_thread(path.read_bytes)
            if now != contents:
                context.load_verify_locations(path)
                contents = now
        except OSError as exc:  # includes SSLError
            logger.warning("client CA not reloaded", extra={"error": str(exc)})
        await asyncio.sleep(look_seconds)
