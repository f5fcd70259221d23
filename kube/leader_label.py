"""The label by which the Service finds the leader's pod."""

from urllib.parse import quote

from kube.client import MERGE_PATCH, KubeClient
from kube.marks import LEADER_LABEL


class LeaderLabel:
    """Moves the label to one pod."""

    def __init__(self, client: KubeClient, *, namespace: str, pod: str) -> None:
        self._client = client
        self._pods = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        self._pod = pod

    async def move_here(self) -> None:
        """Label our pod, and no other: a leader that died could not take its label off."""
        labelled = await self._client.request(
            "GET", self._pods, query={"labelSelector": f"{LEADER_LABEL}=true"}
        )
        others = [item["metadata"]["name"] for item in labelled.get("items") or ()]
        await self._set(self._pod, "true")
        for name in others:
            if name != self._pod:
                await self._set(name, None)

    async def _set(self, pod: str, value: str | None) -> None:
        body = {"metadata": {"labels": {LEADER_LABEL: value}}}
        path = f"{self._pods}/{quote(pod, safe='')}"
        await self._client.request("PATCH", path, body=body, content_type=MERGE_PATCH)
