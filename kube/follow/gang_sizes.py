"""PodGroup objects, followed: how many members a gang needs, where its pods do not say so.

Three projects have such a kind (Kubernetes itself, the coscheduling plugin, Volcano); a cluster may
have none of them, or get one later. They are looked for now and then.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NoReturn

from kube.api.client import KubeClient, KubeError
from kube.api.feed import Feed
from kube.read.gangs import GangForm
from kube.read.managed_pod import ManagedPod
from kube.read.pod_groups import PodGroupSink

logger = logging.getLogger(__name__)

_API_GROUPS: Final = {
    GangForm.NATIVE: "scheduling.k8s.io",
    GangForm.COSCHEDULING: "scheduling.x-k8s.io",
    GangForm.VOLCANO: "scheduling.volcano.sh",
}
_LOOK_SECONDS: Final = 60.0


class GangSizes:
    """The sizes that PodGroup objects tell, of every kind that this cluster has."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._sinks = {form: PodGroupSink(on_change=self._tell) for form in _API_GROUPS}
        self._followed: dict[GangForm, None] = {}
        self.on_change: list[Callable[[], None]] = []
        """Who wants to know of PodGroups that came, changed or went."""
        self.looked = asyncio.Event()
        """Set when it is known which kinds there are, and what they hold."""

    def size(self, pod: ManagedPod) -> int | None:
        """How many members the pod's gang needs to start; None if nobody says."""
        sink = self._sinks.get(pod.gang.form)
        group = sink.find(pod.gang.key) if sink else None
        return group.min_size if group else None

    def is_awaited(self, pod: ManagedPod) -> bool:
        """Whether only a PodGroup can say how large the pod's gang is, and it is not known yet.

        Two feeds have no order: a gang's pods may be seen before its PodGroup. Where the cluster
        has no such kind there is nothing to wait for.
        """
        gang = pod.gang
        says_itself = gang.size is not None or gang.min_size is not None or pod.is_charged_alone
        if says_itself or gang.form not in self._followed:
            return False
        return self._sinks[gang.form].find(gang.key) is None

    def _tell(self) -> None:
        for tell in self.on_change:
            tell()

    async def run(self) -> NoReturn:
        """Look for the kinds, and follow those that there are."""
        async with asyncio.TaskGroup() as group:
            missing = list(_API_GROUPS)
            while True:
                feeds = {form: await self._find(form) for form in missing}
                found = {form: feed for form, feed in feeds.items() if feed is not None}
                for feed in found.values():
                    group.create_task(feed.run())
                for feed in found.values():
                    await feed.synced.wait()
                self._followed.update(dict.fromkeys(found))
                self.looked.set()
                missing = [form for form in missing if form not in found]
                await asyncio.sleep(_LOOK_SECONDS)
        raise AssertionError("the loop above has no end")

    async def _find(self, form: GangForm) -> Feed | None:
        """A feed of one kind, if the cluster has it and lets us read it."""
        api_group = _API_GROUPS[form]
        try:
            for version in await self._versions(api_group):
                path = f"/apis/{api_group}/{version}"
                resources = (await self._client.request("GET", path)).get("resources") or ()
                if any(resource.get("name") == "podgroups" for resource in resources):
                    await self._client.request("GET", f"{path}/podgroups", query={"limit": "1"})
                    return self._feed(form, f"{path}/podgroups")
        except KubeError as exc:
            if not exc.is_missing:
                logger.warning("PodGroups not read", extra={"form": form, "error": str(exc)})
        return None

    async def _versions(self, api_group: str) -> list[str]:
        found = await self._client.request("GET", f"/apis/{api_group}")
        return [entry["version"] for entry in found.get("versions") or ()]

    def _feed(self, form: GangForm, path: str) -> Feed:
        return Feed(self._client, path, sink=self._sinks[form], on_synced=lambda: None)
