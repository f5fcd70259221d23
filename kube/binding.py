"""Put a pod on a node: one API call that writes the node and the annotations together."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from kube.client import KubeClient, KubeError
from policy.errors import BackendError

_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRef:
    """A pod as of one moment: a namesake or a changed pod is another one."""

    namespace: str
    name: str
    uid: str
    resource_version: str | None

    @property
    def path(self) -> str:
        """Where the API server keeps it."""
        namespace, name = quote(self.namespace, safe=""), quote(self.name, safe="")
        return f"/api/v1/namespaces/{namespace}/pods/{name}"


class Binder:
    """Binds pods through the API server."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def bind(self, pod: PodRef, *, node: str, annotations: Mapping[str, str]) -> None:
        """Bind, on the condition that the pod is still the one that was decided about.

        kube-scheduler writes conditions to a pod just before it is bound, so that our view may be
        a moment old: then the pod is read again, and only its own change is a reason to give up.
        A pod that is on that node already is bound, whoever asks twice.
        """
        for tries_left in reversed(range(_TRIES)):
            try:
                await self._client.request(
                    "POST", f"{pod.path}/binding", body=_binding(pod, node, annotations)
                )
                return
            except KubeError as exc:
                if not exc.is_conflict or not tries_left:
                    raise
                again = await self._unbound_again(pod, node, conflict=exc)
                if again is None:
                    return
                pod = again

    async def _unbound_again(self, pod: PodRef, node: str, *, conflict: KubeError) -> PodRef | None:
        """Read the pod once more; None if it is on the node.

        The conflict stands if it is another pod, bound elsewhere, ending, or did not change.
        """
        now = await self._client.request("GET", pod.path)
        metadata, bound_to = now["metadata"], now["spec"].get("nodeName")
        is_same = metadata["uid"] == pod.uid
        if is_same and bound_to == node:
            return None
        has_changed = metadata["resourceVersion"] != pod.resource_version
        if not is_same or not has_changed or metadata.get("deletionTimestamp") or bound_to:
            raise conflict
        return PodRef(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            resource_version=metadata["resourceVersion"],
        )


def is_unknown(error: BackendError) -> bool:
    """Whether a binding that failed may have been made all the same."""
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
