"""The topmost controller of a pod, by its owner chain: Job → JobSet, ReplicaSet → Deployment.

A pod names its own controller. Each further link is read from the API server once and remembered:
an object keeps its controller. One without a controller may be adopted, as a ReplicaSet by a
Deployment, so that is remembered for some minutes only. CronJobs and the like are not part of a
chain, since each of their runs is a workload of its own. A link that does not exist, or that we
have no right to read, ends the chain: the last one that is known counts. It is not asked for again
for some seconds, so that the pods of one controller, which are created together, get the same
answer. A link that the API server does not give in time is an error: another answer later would
divide a gang.

The author of a pod can name any object as its controller. So what is known of an object is known of
its kind, name and UID in one namespace: a reference from another namespace, or with another kind or
name, finds nothing.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from kube.api.client import JSON, METADATA_ONLY, KubeClient, KubeError
from kube.read.late_members import LateMembers, find_late, may_be_late
from kube.read.workloads import (
    OwnerLink,
    Workload,
    WorkloadKey,
    controller_of,
    read_created,
)
from kube.values.objects import mapping
from service.memory import BoundedMap, ExpiringMap

_MOST_LINKS: Final = 6
"""The longest chain that is followed; a leader's StatefulSet of a LeaderWorkerSet has five."""
_KEPT: Final = 50_000
_UNREAD_SECONDS: Final = 10.0
_TOPMOST_SECONDS: Final = 300.0
_FINAL: Final = (401, 403, 404, 405, 410)
"""Statuses that the same request would get again."""


class OwnerChains:
    """Resolves owner chains. Used from one event loop."""

    def __init__(self, client: KubeClient, *, monotonic: Callable[[], float]) -> None:
        self._client = client
        self._above: BoundedMap[WorkloadKey, OwnerLink] = BoundedMap(_KEPT)
        """The controller of an object."""
        self._topmost: ExpiringMap[WorkloadKey, None] = ExpiringMap(
            _KEPT, seconds=_TOPMOST_SECONDS, monotonic=monotonic
        )
        """Objects that had no controller a moment ago."""
        self._late: BoundedMap[WorkloadKey, tuple[LateMembers, ...]] = BoundedMap(_KEPT)
        self._created: BoundedMap[WorkloadKey, float] = BoundedMap(_KEPT)
        self._reading: dict[WorkloadKey, asyncio.Task[None]] = {}
        self._unread: ExpiringMap[WorkloadKey, None] = ExpiringMap(
            _KEPT, seconds=_UNREAD_SECONDS, monotonic=monotonic
        )

    async def resolve(self, obj: Mapping[str, Any], *, namespace: str) -> Workload | None:
        """Return the topmost controller of a pod; None if the pod has no controller.

        The caller sets a time limit. Raises KubeError if the API server fails.
        """
        link, found = controller_of(obj), None
        for _ in range(_MOST_LINKS):
            if link is None or link.workload.is_schedule:
                break
            found = link.workload
            link = await self._controller_of(link, namespace)
        return found

    def known(self, obj: Mapping[str, Any], *, namespace: str) -> Workload | None:
        """Return the topmost controller that is known without a request, as far as it is known."""
        link, found = controller_of(obj), None
        for _ in range(_MOST_LINKS):
            if link is None or link.workload.is_schedule:
                break
            found = link.workload
            link = self._above.get(WorkloadKey(namespace, found.mark))
        return found

    def late(self, workload: WorkloadKey) -> tuple[LateMembers, ...]:
        """Return the members that a resolved workload creates only after others are Ready."""
        return self._late.get(workload, ())

    def created(self, workload: WorkloadKey) -> float:
        """Return when a resolved workload was created, in seconds since 1970; 0 if unknown."""
        return self._created.get(workload, 0.0)

    async def _controller_of(self, link: OwnerLink, namespace: str) -> OwnerLink | None:
        key = WorkloadKey(namespace, link.workload.mark)
        if not any(key in known for known in (self._above, self._topmost, self._unread)):
            if key not in self._reading:
                task = self._reading[key] = asyncio.create_task(self._read(link, namespace))
                task.add_done_callback(note_error)
            # Shielded: all pods of a controller share the request, also one that comes in too late.
            await asyncio.shield(self._reading[key])
        return self._above.get(key)

    async def _read(self, link: OwnerLink, namespace: str) -> None:
        key = WorkloadKey(namespace, link.workload.mark)
        try:
            accept = JSON if may_be_late(link.workload) else METADATA_ONLY
            obj = await self._client.request("GET", link.path(namespace), accept=accept)
        except KubeError as exc:
            if exc.status not in _FINAL:
                raise
            obj = {}
        finally:
            del self._reading[key]
        if mapping(obj.get("metadata")).get("uid") == link.workload.uid:
            if (above := controller_of(obj)) is not None:
                self._above[key] = above
            else:
                self._topmost[key] = None
            self._created[key] = read_created(obj)
            if late := find_late(obj):
                self._late[key] = late
        else:
            self._unread[key] = None


def note_error(task: asyncio.Task[None]) -> None:
    """Retrieve the error of a request whose callers may all have given up."""
    if not task.cancelled():
        task.exception()
