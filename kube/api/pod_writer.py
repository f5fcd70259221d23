"""What the planner does to pods: release them to a node, and nominate it again.

Every write names the pod's uid: a namesake that was created since is left alone.
"""

from collections.abc import Callable, Mapping

from kube.api.binder import PodRef
from kube.api.client import MERGE_PATCH, METADATA_ONLY, STRATEGIC_PATCH, KubeClient, Object
from kube.marks import QUEUED_GATE


class PodWriter:
    """Writes to pods through the API server; KubeError if that failed.

    Each answers the pod's resource version as written, which its feed tells only a moment later.
    """

    def __init__(self, client: KubeClient, *, check_leading: Callable[[], None]) -> None:
        """`check_leading` raises BackendError when pods are somebody else's business."""
        self._client = client
        self._check_leading = check_leading

    async def release(self, pod: PodRef, *, node: str, annotations: Mapping[str, str]) -> str:
        """Lift our gate and say where the pod goes, nominated first.

        In this order kube-scheduler looks at the nominated node alone. The other way round it
        might see the pod before the nomination, and would search the whole cluster.

        We may sleep between the two. Then the pod is another leader's, who may have bound it
        elsewhere: its placement must stay as it is.
        """
        version = await self.nominate(pod, node=node)
        self._check_leading()
        body = _release(pod, annotations, version=version)
        return await self._patch(pod.path, body, content_type=STRATEGIC_PATCH)

    async def nominate(self, pod: PodRef, *, node: str | None) -> str:
        """Tell kube-scheduler which node to look at first, and to keep free; None: none."""
        body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        return await self._patch(f"{pod.path}/status", body, content_type=MERGE_PATCH)

    async def _patch(self, path: str, body: Object, *, content_type: str) -> str:
        written = await self._client.request(
            "PATCH", path, body=body, content_type=content_type, accept=METADATA_ONLY
        )
        return str(written["metadata"]["resourceVersion"])


def _release(pod: PodRef, annotations: Mapping[str, str], *, version: str) -> Object:
    metadata = {"uid": pod.uid, "resourceVersion": version, "annotations": dict(annotations)}
    return {
        "metadata": metadata,
        "spec": {"schedulingGates": [{"name": QUEUED_GATE, "$patch": "delete"}]},
    }
