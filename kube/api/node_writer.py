"""Writes to nodes: the annotation that keeps gangs away from a node for a while."""

from collections.abc import Callable
from urllib.parse import quote

from kube.api.client import MERGE_PATCH, METADATA_ONLY, KubeClient
from kube.marks import QUARANTINE_ANNOTATION
from policy.submission import NodeName


class NodeWriter:
    """Writes to nodes through the API server; KubeError if that failed."""

    def __init__(self, client: KubeClient, *, check_leading: Callable[[], None]) -> None:
        """`check_leading` raises BackendError when another replica may lead."""
        self._client = client
        self._check_leading = check_leading

    async def mark_quarantine(self, node: NodeName, text: str | None) -> None:
        """Write the annotation; None removes it."""
        self._check_leading()
        await self._client.request(
            "PATCH",
            f"/api/v1/nodes/{quote(node, safe='')}",
            body={"metadata": {"annotations": {QUARANTINE_ANNOTATION: text}}},
            content_type=MERGE_PATCH,
            accept=METADATA_ONLY,
        )
