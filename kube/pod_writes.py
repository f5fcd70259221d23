"""What the planner does to pods: release, nominate, end. One call each where Kubernetes allows it.

Every write names the pod's uid: a namesake that was created since is left alone.
"""

from collections.abc import Mapping
from datetime import datetime

from kube.binding import PodRef
from kube.client import MERGE_PATCH, KubeClient, KubeError, Object
from kube.marks import QUEUED_GATE

_ANOTHER_UID = (409, 422)  # of a delete, of a patch
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


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

    async def end(self, pod: PodRef, *, message: str, now: datetime) -> None:
        """End a pod with the grace it asked for; one that is gone already is ended.

        The condition goes first: a Job that does not count disruptions as failures reads it.
        """
        try:
            await self._client.request(
                "PATCH",
                f"{pod.path}/status",
                body=_disruption(pod, message, now),
                content_type=STRATEGIC_PATCH,
            )
            await self._client.request("DELETE", pod.path, body={"preconditions": {"uid": pod.uid}})
        except KubeError as exc:
            if not _is_another(exc):
                raise


def _is_another(refusal: KubeError) -> bool:
    """Whether the pod we meant is gone: nothing has its name, or something with another uid."""
    return refusal.is_missing or refusal.status in _ANOTHER_UID


def _release(pod: PodRef, annotations: Mapping[str, str]) -> Object:
    return {
        "metadata": {"uid": pod.uid, "annotations": dict(annotations)},
        "spec": {"schedulingGates": [{"name": QUEUED_GATE, "$patch": "delete"}]},
    }


def _disruption(pod: PodRef, message: str, now: datetime) -> Object:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": message,
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
