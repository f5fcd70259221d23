"""Publishes the CA of the extender's certificate where every user of the cluster can read it.

The certificate of the extender comes from a directory, which the webhook, cert-manager or an admin
fills. Users have no right to read the Secret behind it. So the leader copies `ca.crt`, and only
that file, into the ConfigMap `cellgate-ca`, and again when it changes.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final, NoReturn

from kube.api.config_maps import ConfigMapWriter
from policy.errors import BackendError

logger = logging.getLogger(__name__)

_FILE: Final = "ca.crt"
_CHECK_SECONDS: Final = 60.0


class CaPublisher:
    """Keeps the ConfigMap equal to the file while this replica leads."""

    def __init__(self, ca_path: Path, writer: ConfigMapWriter) -> None:
        self._ca_path = ca_path
        self._writer = writer
        self._last_error = ""

    async def run(self) -> NoReturn:
        """Publish until cancelled; without the right to do so, say that once and try again."""
        while True:
            await self.step()
            await asyncio.sleep(_CHECK_SECONDS)

    async def step(self) -> None:
        """Publish the CA if it is not the one that is published."""
        try:
            text = await asyncio.to_thread(self._ca_path.read_text)
            if await self._writer.publish({_FILE: text}):
                logger.info("CA published")
            self._last_error = ""
        except (OSError, UnicodeDecodeError, BackendError) as exc:
            if str(exc) != self._last_error:
                logger.warning("CA not published", extra={"error": str(exc)})
            self._last_error = str(exc)
