"""The label by which the Service finds the leader's pod."""

from urllib.parse import quote

from kube.client import MERGE_PATCH, KubeClient, KubeError
from kube.marks import LEADER_LABEL


class LeaderLabel:
    """Moves the label to one pod."""

    def __init__(self, client: KubeClient, *, namespace: str, pod: str) -> None:
        self._client = client
        self._pods = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        self._pod = pod

    async def move_here(self) -> None:
        """Label our pod, and no other: a leader that died could not take its label off."""
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
            if not exc.is_missing:  # gone, and its label with it
                raise

    async def _set(self, pod: str, value: str | None) -> None:
        body = {"metadata": {"labels": {LEADER_LABEL: value}}}
        path = f"{self._pods}/{quote(pod, safe='')}"
        await self._client.request("PATCH", path, body=body, content_type=MERGE_PATCH)
