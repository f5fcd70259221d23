"""Binds a pod to a node: one request that writes the node and the annotations together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

from kube.api.client import KubeClient, KubeError, Object
from kube.marks import PLACEMENT_ANNOTATION
from kube.read.managed_pod import ManagedPod
from policy.errors import BackendError

_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRef:
    """A pod at one version: a pod of the same name or a changed pod is another one."""

    namespace: str
    name: str
    uid: str
    resource_version: str | None = None
    """None: whichever version it has."""

    @classmethod
    def of(cls, pod: ManagedPod) -> "PodRef":
        """Refer to a pod at whichever version it has."""
        return cls(namespace=pod.namespace, name=pod.name, uid=pod.uid)

    @property
    def path(self) -> str:
        """Where the API server keeps it."""
        namespace, name = quote(self.namespace, safe=""), quote(self.name, safe="")
        return f"/api/v1/namespaces/{namespace}/pods/{name}"


class Binder:
    """Binds pods through the API server."""

    def __init__(self, client: KubeClient, *, check_leading: Callable[[], None]) -> None:
        """`check_leading` raises BackendError when another replica may lead."""
        self._client = client
        self._check_leading = check_leading

    async def bind(self, pod: PodRef, *, node: str, annotations: Mapping[str, str]) -> None:
        """Bind, provided that the pod is still the one that was decided about.

        kube-scheduler writes conditions to a pod just before it is bound, so our version may be
        outdated: then the pod is read again, and only a change that matters ends the attempt. A
        pod that is on that node already counts as bound. If this process was suspended, a new
        leader may have given the pod another placement.
        """
        for tries_left in reversed(range(_TRIES)):
            self._check_leading()
            try:
                await self._client.request(
                    "POST", f"{pod.path}/binding", body=_binding(pod, node, annotations)
                )
                return
            except KubeError as exc:
                if not exc.is_conflict or not tries_left:
                    raise
                now = await self._client.request("GET", pod.path)
                if _is_bound(now, pod, node):
                    return
                if _has_lost(now, pod, annotations):
                    raise
                pod = replace(pod, resource_version=now["metadata"]["resourceVersion"])


def _is_bound(now: Object, pod: PodRef, node: str) -> bool:
    return bool(now["metadata"]["uid"] == pod.uid and now["spec"].get("nodeName") == node)


def _has_lost(now: Object, pod: PodRef, annotations: Mapping[str, str]) -> bool:
    """Whether it is another pod, bound elsewhere, ending, placed elsewhere, or unchanged."""
    metadata = now["metadata"]
    placement = (metadata.get("annotations") or {}).get(PLACEMENT_ANNOTATION)
    return bool(
        metadata["uid"] != pod.uid
        or metadata["resourceVersion"] == pod.resource_version
        or metadata.get("deletionTimestamp")
        or now["spec"].get("nodeName")
        or placement not in (None, annotations.get(PLACEMENT_ANNOTATION))
    )


def is_unknown(error: BackendError) -> bool:
    """Whether a binding that failed may have been stored nevertheless."""
    return not isinstance(error, KubeError) or error.status == 0 or error.status >= 500


def _binding(pod: PodRef, node: str, annotations: Mapping[str, str]) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "annotations": dict(annotations),
            **({"resourceVersion": pod.resource_version} if pod.resource_version else {}),
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
