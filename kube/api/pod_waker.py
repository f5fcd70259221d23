"""Let kube-scheduler look at a pod again: it does so when anything of the pod changes."""

from kube import marks
from kube.api.binder import PodRef
from kube.api.client import MERGE_PATCH, KubeClient, KubeError
from service.clock import Clock


class PodWaker:
    """Wakes pods through the API server."""

    def __init__(self, client: KubeClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def wake(self, pod: PodRef) -> None:
        """Touch an annotation; a pod that is gone needs no waking. KubeError if it failed."""
        at = self._clock.now().isoformat(timespec="milliseconds")
        metadata = {"uid": pod.uid, "annotations": {marks.WOKEN_ANNOTATION: at}}
        try:
            await self._client.request(
                "PATCH", pod.path, body={"metadata": metadata}, content_type=MERGE_PATCH
            )
        except KubeError as exc:
            if not exc.is_missing and not exc.is_conflict:
                raise
