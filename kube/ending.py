"""End a pod gracefully, and say on it that it was preempted: as kube-scheduler does it."""

from collections.abc import Callable
from datetime import UTC, datetime

from kube.binding import PodRef
from kube.client import STRATEGIC_PATCH, KubeClient, KubeError

_PERHAPS_ANOTHER = (409, 422)  # how a delete and a patch of a namesake are refused, and others too


class PodEnder:
    """Ends pods through the API server."""

    def __init__(self, client: KubeClient, *, check_leading: Callable[[], None]) -> None:
        """`check_leading` raises BackendError when victims are somebody else's business."""
        self._client = client
        self._check_leading = check_leading

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
            self._check_leading()  # we may have slept, and it may be spared by now
            preconditions = {"uid": pod.uid}
            await self._client.request("DELETE", pod.path, body={"preconditions": preconditions})
        except KubeError as exc:
            if exc.is_missing or (exc.status in _PERHAPS_ANOTHER and await self._is_gone(pod)):
                return False
            raise
        return True

    async def _is_gone(self, pod: PodRef) -> bool:
        """Whether the name is nobody's by now, or another pod's."""
        try:
            now = await self._client.request("GET", pod.path)
        except KubeError as exc:
            if exc.is_missing:
                return True
            raise
        return bool(now["metadata"]["uid"] != pod.uid)


def _disrupted(pod: PodRef, why: str) -> dict[str, object]:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": why,
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
