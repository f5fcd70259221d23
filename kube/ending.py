"""End a pod gracefully, and say on it that it was preempted: as kube-scheduler does it."""

from datetime import UTC, datetime

from kube.binding import PodRef
from kube.client import STRATEGIC_PATCH, KubeClient, KubeError

_ANOTHER_UID = (409, 422)  # a namesake: how a delete and how a patch are refused


class PodEnder:
    """Ends pods through the API server."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def end(self, pod: PodRef, *, why: str) -> bool:
        """End a pod after its own grace period; False if it is gone already.

        The condition tells its controller that it was no failure of the pod's own. KubeError if
        the API server did not do it.
        """
        try:
            await self._client.request(
                "PATCH",
                f"{pod.path}/status",
                body=_disrupted(pod, why),
                content_type=STRATEGIC_PATCH,
            )
            preconditions = {"uid": pod.uid}
            await self._client.request("DELETE", pod.path, body={"preconditions": preconditions})
        except KubeError as exc:
            if exc.is_missing or exc.status in _ANOTHER_UID:
                return False
            raise
        return True


def _disrupted(pod: PodRef, why: str) -> dict[str, object]:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": why,
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
