"""Count the live members of a pod's gang, for the check of `kube.admission.live_count`."""

from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.admission.live_count import check_count, shared_label
from kube.api.client import KubeClient, KubeError
from kube.read.managed_pod import ManagedPod
from kube.read.pods import read_pod
from kube.values.objects import items
from policy.errors import RequestError
from policy.submission import GangKey
from webhook.ledger_access.time_budget import KUBE_SECONDS, within_budget

_LIVE: Final = "status.phase!=Succeeded,status.phase!=Failed"


async def check_room(client: KubeClient, pod: ManagedPod) -> None:
    """Raise RequestError if a pod would be one member too many of its gang."""
    label = shared_label(pod)
    if label is not None:
        check_count(pod, await _count(client, pod, label))


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
