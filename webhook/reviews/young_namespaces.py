"""Namespaces that were created a moment ago: their labels are read before a pod gets a default VC.

The copy of namespaces in memory is a few milliseconds old. A user who creates a namespace with its
label and a pod right after that must not get another VC than the label says.
"""

import logging
from urllib.parse import quote

from kube.api.client import METADATA_ONLY, KubeClient, KubeError
from kube.follow.namespaces import NamespaceSink
from service.clock import Clock
from webhook.ledger_access.time_budget import KUBE_SECONDS, within_budget

logger = logging.getLogger(__name__)


class YoungNamespaces:
    """Reads young namespaces from the API server, once for each review."""

    def __init__(self, client: KubeClient, known: NamespaceSink, *, clock: Clock) -> None:
        self._client = client
        self._known = known
        self._clock = clock

    async def settle(self, namespace: str) -> None:
        """Read the labels of a namespace if it is young and names no VC.

        Without an answer in time, what is known counts.
        """
        if not namespace or self._known.is_settled(namespace, now=self._clock.now().timestamp()):
            return
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}"
        try:
            async with within_budget(KUBE_SECONDS):
                found = await self._client.request("GET", path, accept=METADATA_ONLY)
        except (KubeError, TimeoutError) as exc:
            logger.info("namespace not read", extra={"namespace": namespace, "error": str(exc)})
        else:
            self._known.upsert(found)
