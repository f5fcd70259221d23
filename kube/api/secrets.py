"""Secrets: read, and written only if they have not changed since."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from kube.api.client import KubeClient, KubeError, Object
from kube.marks import RENEW_ANNOTATION
from kube.values.objects import mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """What a Secret held at one moment."""

    files: Mapping[str, bytes]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    version: str | None = None
    """Its resource version, the precondition of a write; None for one that does not exist."""


MISSING = Secret(files={}, labels={}, annotations={})


def read_secret(obj: Object) -> Secret:
    """Read a Secret; ValueError if it is damaged."""
    metadata = mapping(obj.get("metadata"))
    try:
        files = {
            name: base64.b64decode(content, validate=True)
            for name, content in mapping(obj.get("data")).items()
        }
    except (binascii.Error, TypeError) as exc:
        raise ValueError(f"data is not base64: {exc}") from exc
    return Secret(
        files=files,
        labels=mapping(metadata.get("labels")),
        annotations=mapping(metadata.get("annotations")),
        version=metadata.get("resourceVersion"),
    )


class Secrets:
    """The Secrets of one namespace."""

    def __init__(self, client: KubeClient, *, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self.path = f"/api/v1/namespaces/{quote(namespace, safe='')}/secrets"

    async def load(self, name: str) -> Secret:
        """Read one; `MISSING` if it does not exist."""
        try:
            return read_secret(await self._client.request("GET", f"{self.path}/{name}"))
        except KubeError as exc:
            if exc.is_missing:
                return MISSING
            raise

    async def save(self, name: str, files: Mapping[str, bytes], *, over: Secret) -> None:
        """Write one whole; KubeError (a conflict) if it has changed since `over` was read.

        Labels and annotations of others stay; the annotation that asks for renewal is removed.
        """
        annotations = {
            key: value for key, value in over.annotations.items() if key != RENEW_ANNOTATION
        }
        body: Object = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": self._namespace,
                "labels": dict(over.labels),
                "annotations": annotations,
            },
            "type": "Opaque",
            "data": {key: base64.b64encode(content).decode() for key, content in files.items()},
        }
        if over.version is None:
            await self._client.request("POST", self.path, body=body)
            return
        body["metadata"]["resourceVersion"] = over.version
        await self._client.request("PUT", f"{self.path}/{name}", body=body)
