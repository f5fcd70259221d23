"""What the leader writes on its own pod: its epoch, and the label that the Service selects."""

from urllib.parse import quote

from kube.api.client import MERGE_PATCH, KubeClient, KubeError, Object
from kube.marks import EPOCH_ANNOTATION, LEADER_LABEL


class LeaderLabel:
    """Marks one pod as the leader's."""

    def __init__(self, client: KubeClient, *, namespace: str, pod: str) -> None:
        self._client = client
        self._pods = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        self._pod = pod

    async def claim(self, epoch: int) -> str | None:
        """Write our epoch on our pod; return its resource version, None if there is no such pod.

        A pod feed that has reached that version has seen all earlier writes to pods.
        """
        body = {"metadata": {"annotations": {EPOCH_ANNOTATION: str(epoch)}}}
        try:
            written = await self._patch(self._pod, body)
        except KubeError as exc:
            if exc.is_missing:
                return None
            raise
        return str(written["metadata"]["resourceVersion"])

    async def move_here(self) -> None:
        """Label our pod, and remove the label from others: a leader that died could not do so."""
        listed = await self._client.request(
            "GET", self._pods, query={"labelSelector": f"{LEADER_LABEL}=true"}
        )
        labelled = [item["metadata"]["name"] for item in listed.get("items") or ()]
        if self._pod not in labelled:
            await self._set(self._pod, "true")
        for name in labelled:
            if name != self._pod:
                await self._take_from(name)

    async def _take_from(self, pod: str) -> None:
        try:
            await self._set(pod, None)
        except KubeError as exc:
            if not exc.is_missing:
                raise

    async def _set(self, pod: str, value: str | None) -> None:
        await self._patch(pod, {"metadata": {"labels": {LEADER_LABEL: value}}})

    async def _patch(self, pod: str, body: Object) -> Object:
        path = f"{self._pods}/{quote(pod, safe='')}"
        return await self._client.request("PATCH", path, body=body, content_type=MERGE_PATCH)
