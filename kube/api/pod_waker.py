"""Let kube-scheduler look at a pod again: it does so when anything of the pod changes."""

from datetime import UTC, datetime

from kube import marks
from kube.api.binder import PodRef
from kube.api.client import MERGE_PATCH, KubeClient, KubeError


class PodWaker:
    """Wakes pods through the API server."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def wake(self, pod: PodRef) -> None:
        """Touch an annotation; a pod that is gone needs no waking. KubeError if it failed."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        metadata = {"uid": pod.uid, "annotations": {marks.WOKEN_ANNOTATION: at}}
        try:
            await self._client.request(
                "PATCH", pod.path, body={"metadata": metadata}, content_type=MERGE_PATCH
            )
        except KubeError as exc:
            if not exc.is_missing and not exc.is_conflict:
                raise
