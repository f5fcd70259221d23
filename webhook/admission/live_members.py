"""How many members of a gang are alive, where a label tells whose they are.

Asked only about gangs of which pods were seen running: members that come together are counted by
the extender, which lets none beyond the size start. Whoever comes later is told here and now.
"""

from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.api.client import KubeClient, KubeError
from kube.read.gangs import GangForm
from kube.read.pods import ManagedPod
from kube.values.objects import items, mapping
from policy.errors import RequestError
from webhook.admission.time_budget import KUBE_SECONDS, within_budget

_LABELS: Final = {GangForm.CELLGATE: marks.GANG_LABEL, GangForm.KUEUE: marks.KUEUE_GROUP}
_LIVE: Final = "status.phase!=Succeeded,status.phase!=Failed"


class Members:
    """Asks the API server for the members of gangs."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def check_room(self, pod: ManagedPod) -> None:
        """Raise RequestError if a pod would be one member too many of its gang."""
        label, size = _LABELS.get(pod.gang.form), pod.gang.size
        if label is None or size is None:
            return
        if await self._count(pod, label) >= size:
            message = f"gang {pod.gang.key} has all its {size} members"
            hint = "another one can come when one of them has ended"
            raise RequestError.at(f"metadata.labels[{label}]", f"{message}; {hint}")

    async def _count(self, pod: ManagedPod, label: str) -> int:
        """Count what is alive; none if the API server does not say, which is held against none."""
        query = {
            "labelSelector": f"{label}={pod.gang.key.name}",
            "fieldSelector": _LIVE,
            "resourceVersion": "0",  # from the API server's memory
        }
        try:
            async with within_budget(KUBE_SECONDS):
                path = f"/api/v1/namespaces/{pod.namespace}/pods"
                found = await self._client.request("GET", path, query=query)
        except (KubeError, TimeoutError):
            return 0
        return sum(not _is_ending(one) for one in items(found.get("items")))


def _is_ending(pod: Mapping[str, Any]) -> bool:
    return mapping(pod.get("metadata")).get("deletionTimestamp") is not None
