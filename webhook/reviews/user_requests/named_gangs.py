"""Finds the pods of a gang that a user names: by its own name, or by that of one of its pods."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.api.client import KubeClient, KubeError
from kube.follow.namespaces import NamespaceSink
from kube.read.managed_pod import ManagedPod
from kube.read.pods import read_pod
from kube.values.objects import items
from kube.values.texts import LABEL_VALUE, NAMESPACE, OBJECT_NAME
from policy.errors import ConflictError, RequestError

_SECONDS: Final = 1.0
"""For all requests together: a user waits for the answer, and can try again."""
_MOST_PODS: Final = 500
_NAMING_LABELS: Final = (
    marks.GANG_LABEL,
    marks.JOB_NAME_LABEL,
    marks.COSCHEDULING_LABEL,
    marks.COSCHEDULING_LIGHT_LABEL,
    marks.KUEUE_GROUP,
)


class NamedGangs:
    """Reads pods from the API server."""

    def __init__(self, client: KubeClient, namespaces: NamespaceSink) -> None:
        self._client = client
        self._namespaces = namespaces

    async def find(self, namespace: str, name: str) -> list[ManagedPod]:
        """Return the managed pods of all gangs that a name may mean; none if there are none.

        Raises ConflictError if the API server does not answer in time.
        """
        if NAMESPACE.problem(namespace) is not None:
            return []  # it would become another path
        try:
            async with asyncio.timeout(_SECONDS):
                return await self._find(namespace, name)
        except (KubeError, TimeoutError) as exc:
            raise ConflictError(f"gang {namespace}/{name} cannot be read now") from exc

    async def _find(self, namespace: str, name: str) -> list[ManagedPod]:
        path = f"/api/v1/namespaces/{namespace}/pods"
        found = await self._get(f"{path}/{name}") if OBJECT_NAME.problem(name) is None else None
        if found is not None:
            return [found]
        is_label = LABEL_VALUE.problem(name) is None
        for label in _NAMING_LABELS if is_label else ():
            query = {"labelSelector": f"{label}={name}", "limit": str(_MOST_PODS)}
            listed = await self._client.request("GET", path, query=query)
            pods = [pod for pod in map(self.read, items(listed.get("items"))) if pod is not None]
            if pods:
                return pods
        return []

    async def _get(self, path: str) -> ManagedPod | None:
        try:
            return self.read(await self._client.request("GET", path))
        except KubeError as exc:
            if exc.is_missing:
                return None
            raise

    def read(self, obj: Mapping[str, Any]) -> ManagedPod | None:
        """Read a stored pod; None if it is not managed or not valid."""
        try:
            pod = read_pod(obj)
            labels = self._namespaces.labels(pod.namespace) if pod is not None else {}
            return read_pod(obj, namespace_labels=labels)
        except RequestError:
            return None
