"""ConfigMaps that we write: files that all users may read."""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

from kube.api.client import MERGE_PATCH, KubeClient
from kube.values.objects import mapping

CA_CONFIG_MAP: Final = "cellgate-ca"
"""The CA certificates by which users verify the extender; all authenticated users may read it."""


class ConfigMapWriter:
    """Writes one ConfigMap through the API server; KubeError if that failed."""

    def __init__(
        self, client: KubeClient, *, namespace: str, name: str, check_leading: Callable[[], None]
    ) -> None:
        """`check_leading` raises BackendError when another replica may lead."""
        self._client = client
        self._path = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps/{name}"
        self._check_leading = check_leading

    async def publish(self, files: Mapping[str, str]) -> bool:
        """Write the files unless they are there; True if that was a change. Others stay."""
        stored = mapping((await self._client.request("GET", self._path)).get("data"))
        if files.items() <= stored.items():
            return False
        self._check_leading()
        await self._client.request(
            "PATCH", self._path, body={"data": dict(files)}, content_type=MERGE_PATCH
        )
        return True
