"""What the planner does to pods: release them to a node, and nominate it again.

Every write names the pod's uid: a namesake that was created since is left alone.
"""

from collections.abc import Mapping

from kube.binding import PodRef
from kube.client import MERGE_PATCH, STRATEGIC_PATCH, KubeClient, Object
from kube.marks import QUEUED_GATE


class PodWriter:
    """Writes to pods through the API server; KubeError if that failed."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def release(self, pod: PodRef, *, node: str, annotations: Mapping[str, str]) -> None:
        """Lift our gate and say where the pod goes, nominated first.

        In this order kube-scheduler looks at the nominated node alone. The other way round it
        might see the pod before the nomination, and would search the whole cluster.
        """
        await self.nominate(pod, node=node)
        await self._client.request(
            "PATCH", pod.path, body=_release(pod, annotations), content_type=STRATEGIC_PATCH
        )

    async def nominate(self, pod: PodRef, *, node: str) -> None:
        """Tell kube-scheduler which node to look at first."""
        body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        await self._client.request(
            "PATCH", f"{pod.path}/status", body=body, content_type=MERGE_PATCH
        )


def _release(pod: PodRef, annotations: Mapping[str, str]) -> Object:
    return {
        "metadata": {"uid": pod.uid, "annotations": dict(annotations)},
        "spec": {"schedulingGates": [{"name": QUEUED_GATE, "$patch": "delete"}]},
    }
