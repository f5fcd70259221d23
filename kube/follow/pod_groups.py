"""PodGroup objects: the size of gangs whose pods do not say it, and the class of native ones.

Three projects have such a kind (Kubernetes itself, the coscheduling plugin, Volcano), each in
versions of its own. A cluster may have none of them, get one later, or change its version: the
kinds are discovered, again and again while one is missing.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from kube.api.client import KubeClient, KubeError, Object
from kube.api.feed import Feed, FeedSource
from kube.read.gangs import GangForm
from kube.read.managed_pod import ManagedPod
from kube.read.pod_groups import PodGroup, read_pod_group
from policy.submission import GangKey
from service.clock import Clock

logger = logging.getLogger(__name__)

_API_GROUPS: Final = {
    GangForm.NATIVE: "scheduling.k8s.io",
    GangForm.COSCHEDULING: "scheduling.x-k8s.io",
    GangForm.VOLCANO: "scheduling.volcano.sh",
}
_RESOURCE: Final = "podgroups"
_DISCOVERY_SECONDS: Final = 60.0
"""How long a kind that a cluster gets may stay unknown."""
_RETRY_SECONDS: Final = 2.0


class PodGroupSink:
    """Keeps the PodGroups of one kind."""

    def __init__(self, *, on_change: Callable[[], None] = lambda: None) -> None:
        """`on_change` runs after a change of size or class, not of a status."""
        self._groups: dict[GangKey, PodGroup] = {}
        self._on_change = on_change
        self.is_synced = False
        """Whether all PodGroups of the kind are known."""

    def find(self, key: GangKey) -> PodGroup | None:
        """Return a PodGroup, None if it is not known."""
        return self._groups.get(key)

    def replace(self, objects: Sequence[Object]) -> None:
        """Take all PodGroups of the kind; any other is gone."""
        self._groups = {group.key: group for group in map(read_pod_group, objects)}
        self.is_synced = True
        self._on_change()

    def clear(self) -> None:
        """The cluster has no such kind any more."""
        if self.is_synced:
            self._groups, self.is_synced = {}, False
            self._on_change()

    def upsert(self, obj: Object) -> None:
        """A PodGroup appeared or changed."""
        group = read_pod_group(obj)
        if self._groups.get(group.key) != group:
            self._groups[group.key] = group
            self._on_change()

    def remove(self, obj: Object) -> None:
        """A PodGroup is gone."""
        self._groups.pop(read_pod_group(obj).key, None)
        self._on_change()


class PodGroupFollower:
    """Follows the PodGroups of every kind that this cluster has."""

    def __init__(self, client: KubeClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._paths: dict[GangForm, str] = {}
        self._unknown = dict.fromkeys(_API_GROUPS)
        self.sinks = {form: PodGroupSink(on_change=self._tell) for form in _API_GROUPS}
        self.on_change: list[Callable[[], None]] = []
        """Callbacks that run after PodGroups appeared, changed or went."""
        self.synced = asyncio.Event()
        """Set once the PodGroups of each kind are known, or cannot be read."""

    def size(self, pod: ManagedPod) -> int | None:
        """Return how many members the pod's gang needs to start; None if no PodGroup says it."""
        group = self.find(pod)
        return group.min_size if group else None

    def find(self, pod: ManagedPod) -> PodGroup | None:
        """Return the pod's PodGroup, None if it is not known."""
        sink = self.sinks.get(pod.gang.form)
        return sink.find(pod.gang.key) if sink else None

    def is_awaited(self, pod: ManagedPod) -> bool:
        """Whether only a PodGroup can say how large the pod's gang is, and it is not known yet.

        Two feeds have no order: a gang's pods may be seen before its PodGroup. Where the cluster
        has no such kind there is nothing to wait for.
        """
        gang, sink = pod.gang, self.sinks.get(pod.gang.form)
        says_itself = gang.size is not None or gang.min_size is not None or pod.is_charged_alone
        if says_itself or sink is None or not sink.is_synced:
            return False
        return sink.find(gang.key) is None

    async def read(self, form: GangForm, key: GangKey) -> PodGroup:
        """Read one PodGroup from the API server.

        Raises KubeError; its `is_missing` also means that the cluster has no such kind.
        """
        path = self._paths.get(form) or await self._discover(form)
        if path is None:
            raise KubeError(f"the cluster has no {_RESOURCE} of {_API_GROUPS[form]}", status=404)
        prefix = path.removesuffix(_RESOURCE)
        one = f"{prefix}namespaces/{key.namespace}/{_RESOURCE}/{key.name}"
        return read_pod_group(await self._client.request("GET", one))

    async def run(self, *, on_synced: Callable[[], None] = lambda: None) -> None:
        """Discover the kinds, and follow those that there are, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for form in _API_GROUPS:
                group.create_task(self._follow(form, on_synced))

    async def _follow(self, form: GangForm, on_synced: Callable[[], None]) -> None:
        def settle() -> None:
            self._unknown.pop(form, None)
            if not (self._unknown or self.synced.is_set()):
                self.synced.set()
                on_synced()

        was_missing = False
        while True:
            try:
                path = await self._discover(form)
            except KubeError as exc:
                logger.warning("PodGroups not discovered", extra={"form": form, "error": str(exc)})
                if exc.status:
                    settle()  # as with a broken kind of another project: it stops no service
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            if path is None:
                settle()
                if was_missing:  # an API server that starts lacks kinds for a moment
                    self.sinks[form].clear()
                was_missing = True
                await asyncio.sleep(_DISCOVERY_SECONDS)
                continue
            was_missing = False
            source = FeedSource(path=path, sink=self.sinks[form], is_optional=True)
            feed = Feed(self._client, source, clock=self._clock, on_synced=settle)
            self._paths[form] = path
            await feed.run()
            del self._paths[form]
            await asyncio.sleep(_RETRY_SECONDS)

    async def _discover(self, form: GangForm) -> str | None:
        """Return the path of one kind in the version that the API server prefers, if it has it."""
        api = f"/apis/{_API_GROUPS[form]}"
        for version in await self._get(api, "versions"):
            path = f"{api}/{version['version']}"
            resources = await self._get(path, "resources")
            if any(resource["name"] == _RESOURCE for resource in resources):
                return f"{path}/{_RESOURCE}"
        return None

    async def _get(self, path: str, field: str) -> Sequence[Object]:
        """Return a list of the discovery API; empty if the cluster does not have the path."""
        try:
            found = await self._client.request("GET", path)
        except KubeError as exc:
            if exc.is_missing:
                return ()
            raise
        return found.get(field) or ()

    def _tell(self) -> None:
        for tell in self.on_change:
            tell()
