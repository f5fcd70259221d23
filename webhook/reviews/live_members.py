"""Refuse a pod of a running gang that already has all its members.

Only asked about gangs of which pods were seen running, and whose members share a label. Of members
that are created together, the extender starts no more than the gang's size.
"""

from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.api.client import KubeClient, KubeError
from kube.read.gangs import GangForm
from kube.read.managed_pod import ManagedPod
from kube.read.pods import read_pod
from kube.values.objects import items
from policy.errors import RequestError
from policy.submission import GangKey
from webhook.ledger_access.time_budget import KUBE_SECONDS, within_budget

_LABELS: Final = {GangForm.CELLGATE: marks.GANG_LABEL, GangForm.KUEUE: marks.KUEUE_GROUP}
_LIVE: Final = "status.phase!=Succeeded,status.phase!=Failed"


async def check_room(client: KubeClient, pod: ManagedPod) -> None:
    """Raise RequestError if a pod would be one member too many of its gang."""
    label, size = _LABELS.get(pod.gang.form), pod.gang.size
    if label is None or size is None:
        return
    if await _count(client, pod, label) >= size:
        message = f"gang {pod.gang.key} already has all its {size} members"
        hint = "a new member is admitted once one of them has ended"
        raise RequestError.at(f"metadata.labels[{label}]", f"{message}; {hint}")


async def _count(client: KubeClient, pod: ManagedPod, label: str) -> int:
    """Count the live members; 0 if the API server does not answer, so that none is refused."""
    named = pod.labels.get(label)
    query = {
        "labelSelector": f"{label}={named}" if named else marks.GANG_SIZE_LABEL,
        "fieldSelector": _LIVE,
        "resourceVersion": "0",  # from the API server's cache
    }
    try:
        async with within_budget(KUBE_SECONDS):
            path = f"/api/v1/namespaces/{pod.namespace}/pods"
            found = await client.request("GET", path, query=query)
    except (KubeError, TimeoutError):
        return 0
    return sum(_is_live_member(one, pod.gang.key) for one in items(found.get("items")))


def _is_live_member(obj: Mapping[str, Any], gang: GangKey) -> bool:
    try:
        pod = read_pod(obj)
    except RequestError:
        return False
    return pod is not None and pod.gang.key == gang and not pod.is_deleting
