"""What the planner does to pods: release them to a node, and nominate it again.

Every write names the pod's uid: a namesake that was created since is left alone.
"""

from collections.abc import Mapping

from kube.binding import PodRef
from kube.client import MERGE_PATCH, METADATA_ONLY, STRATEGIC_PATCH, KubeClient, Object
from kube.marks import QUEUED_GATE


class PodWriter:
    """Writes to pods through the API server; KubeError if that failed.

    Each answers the pod's resource version as written, which its feed tells only a moment later.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def release(self, pod: PodRef, *, node: str, annotations: Mapping[str, str]) -> str:
        """Lift our gate and say where the pod goes, nominated first.

        In this order kube-scheduler looks at the nominated node alone. The other way round it
        might see the pod before the nomination, and would search the whole cluster.
        """
        await self.nominate(pod, node=node)
        return await self._patch(pod.path, _release(pod, annotations), content_type=STRATEGIC_PATCH)

    async def nominate(self, pod: PodRef, *, node: str) -> str:
        """Tell kube-scheduler which node to look at first."""
        body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        return await self._patch(f"{pod.path}/status", body, content_type=MERGE_PATCH)

    async def _patch(self, path: str, body: Object, *, content_type: str) -> str:
        written = await self._client.request(
            "PATCH", path, body=body, content_type=content_type, accept=METADATA_ONLY
        )
        return str(written["metadata"]["resourceVersion"])


def _release(pod: PodRef, annotations: Mapping[str, str]) -> Object:
    return {
        "metadata": {"uid": pod.uid, "annotations": dict(annotations)},
        "spec": {"schedulingGates": [{"name": QUEUED_GATE, "$patch": "delete"}]},
    }
