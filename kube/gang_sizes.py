"""PodGroup objects, followed: how many members a gang needs, where its pods do not say so.

Three projects have such a kind (Kubernetes itself, the coscheduling plugin, Volcano); a cluster may
have none of them, or get one later. They are looked for now and then.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NoReturn

from kube.client import KubeClient, KubeError
from kube.feed import Feed
from kube.gangs import GangForm
from kube.managed import ManagedPod
from kube.podgroups import PodGroupSink

logger = logging.getLogger(__name__)

_API_GROUPS: Final = {
    GangForm.NATIVE: "scheduling.k8s.io",
    GangForm.COSCHEDULING: "scheduling.x-k8s.io",
    GangForm.VOLCANO: "scheduling.volcano.sh",
}
_LOOK_SECONDS: Final = 60.0


class GangSizes:
    """The sizes that PodGroup objects tell, of every kind that this cluster has."""

    def __init__(self, client: KubeClient, *, on_change: Callable[[], None] = lambda: None) -> None:
        self._client = client
        self._sinks = {form: PodGroupSink(on_change=on_change) for form in _API_GROUPS}
        self.looked = asyncio.Event()
        """Set when it is known which kinds there are, and what they hold."""

    def size(self, pod: ManagedPod) -> int | None:
        """How many members the pod's gang needs to start; None if nobody says."""
        sink = self._sinks.get(pod.gang.form)
        group = sink.find(pod.gang.key) if sink else None
        return group.min_size if group else None

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
