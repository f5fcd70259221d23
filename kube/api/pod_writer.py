"""Writes of the leader to pods: lift the gate, nominate a node, say why it waits, wake a pod.

Every write names the pod's uid, so that a new pod of the same name is left alone.
"""

from collections.abc import Callable, Mapping

from kube.api.binder import PodRef
from kube.api.client import (
    MERGE_PATCH,
    METADATA_ONLY,
    STRATEGIC_PATCH,
    KubeClient,
    KubeError,
    Object,
)
from kube.marks import (
    EFFECTIVE_CLASS_ANNOTATION,
    QUEUED_GATE,
    RELEASED_ANNOTATION,
    WOKEN_ANNOTATION,
)
from service.clock import Clock


class PodWriter:
    """Writes to pods through the API server; KubeError if that failed.

    Each returns the pod's resource version as written, before its feed reports it.
    """

    def __init__(self, client: KubeClient, *, check_leading: Callable[[], None]) -> None:
        """`check_leading` raises BackendError when another replica may lead."""
        self._client = client
        self._check_leading = check_leading

    async def release(self, pod: PodRef, *, node: str, annotations: Mapping[str, str]) -> str:
        """Nominate the node, then lift our gate and write the placement annotations.

        In this order kube-scheduler looks at the nominated node alone. The other way round it
        might see the pod before the nomination, and would search the whole cluster.

        If this process is suspended between the two, a new leader may bind the pod elsewhere: its
        placement must then stay as it is.
        """
        version = await self.nominate(pod, node=node)
        self._check_leading()
        body = _release(pod, annotations, version=version)
        return await self._patch(pod.path, body, content_type=STRATEGIC_PATCH)

    async def release_helper(self, pod: PodRef, *, mark: str) -> str:
        """Lift our gate from a pod without leaf cells, if it has it; kube-scheduler tries it.

        `mark` must differ each time: kube-scheduler tries a pod again when it changes.
        """
        body = _release(pod, {RELEASED_ANNOTATION: mark})
        return await self._patch(pod.path, body, content_type=STRATEGIC_PATCH)

    async def nominate(self, pod: PodRef, *, node: str | None) -> str:
        """Set the node that kube-scheduler tries first and keeps free; None removes it."""
        body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        return await self._patch(f"{pod.path}/status", body, content_type=MERGE_PATCH)

    async def _patch(self, path: str, body: Object, *, content_type: str) -> str:
        written = await self._client.request(
            "PATCH", path, body=body, content_type=content_type, accept=METADATA_ONLY
        )
        return str(written["metadata"]["resourceVersion"])


class GateMessageWriter:
    """Writes into the condition of a gated pod why it waits; `kubectl describe` shows it."""

    def __init__(self, client: KubeClient, *, check_leading: Callable[[], None]) -> None:
        """`check_leading` raises BackendError when another replica may lead."""
        self._client = client
        self._check_leading = check_leading

    async def write(self, pod: PodRef, message: str) -> str:
        """Write the message on a pod at one version; return the new version.

        KubeError if that failed, also for a pod that has changed since: after its gate is lifted,
        its condition belongs to kube-scheduler.
        """
        self._check_leading()
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": message,
        }
        body = {
            "metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version},
            "status": {"conditions": [condition]},
        }
        written = await self._client.request(
            "PATCH",
            f"{pod.path}/status",
            body=body,
            content_type=STRATEGIC_PATCH,
            accept=METADATA_ONLY,
        )
        return str(written["metadata"]["resourceVersion"])


class PodMarker:
    """Writes on a pod what became of its gang: a higher class, another place, a kept hold."""

    def __init__(self, client: KubeClient, *, check_leading: Callable[[], None]) -> None:
        """`check_leading` raises BackendError when another replica may lead."""
        self._client = client
        self._check_leading = check_leading

    async def mark_class(self, pod: PodRef, class_name: str) -> None:
        """Write the effective class, unless the pod is gone. KubeError if it failed."""
        await self.mark(pod, EFFECTIVE_CLASS_ANNOTATION, class_name)

    async def mark(self, pod: PodRef, annotation: str, text: str) -> None:
        """Write an annotation, unless the pod is gone. KubeError if it failed."""
        await self.mark_all(pod, {annotation: text})

    async def mark_all(self, pod: PodRef, annotations: Mapping[str, str]) -> None:
        """Write annotations at once, unless the pod is gone. KubeError if it failed."""
        self._check_leading()
        metadata = {"uid": pod.uid, "annotations": dict(annotations)}
        try:
            await self._client.request(
                "PATCH", pod.path, body={"metadata": metadata}, content_type=MERGE_PATCH
            )
        except KubeError as exc:
            if not exc.is_missing and not exc.is_conflict:
                raise


class PodWaker:
    """Lets kube-scheduler try a waiting pod again: it does so when the pod changes."""

    def __init__(self, client: KubeClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def wake(self, pod: PodRef) -> None:
        """Change an annotation, unless the pod is gone. KubeError if it failed."""
        at = self._clock.now().isoformat(timespec="milliseconds")
        metadata = {"uid": pod.uid, "annotations": {WOKEN_ANNOTATION: at}}
        try:
            await self._client.request(
                "PATCH", pod.path, body={"metadata": metadata}, content_type=MERGE_PATCH
            )
        except KubeError as exc:
            if not exc.is_missing and not exc.is_conflict:
                raise


def _release(pod: PodRef, annotations: Mapping[str, str], *, version: str | None = None) -> Object:
    metadata: Object = {"uid": pod.uid, "annotations": dict(annotations)}
    if version is not None:
        metadata["resourceVersion"] = version
    return {
        "metadata": metadata,
        "spec": {"schedulingGates": [{"name": QUEUED_GATE, "$patch": "delete"}]},
    }
