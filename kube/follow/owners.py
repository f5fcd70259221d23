"""The topmost controller of a pod, by its owner chain: Job → JobSet, ReplicaSet → Deployment.

A pod names its own controller. Each further link is read from the API server once and remembered:
the controller of an object never changes. CronJobs and the like are not part of a chain, since
each of their runs is a workload of its own. A link that cannot be read ends the chain: the last
one that is known counts. It is not asked for again for some seconds, so that the pods of one
controller, which are created together, get the same answer.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from kube.api.client import METADATA_ONLY, KubeClient, KubeError
from kube.read.workloads import OwnerLink, Workload, controller_of
from kube.values.objects import mapping
from service.memory import BoundedMap, ExpiringMap

_MOST_LINKS: Final = 6
"""The longest chain that is followed; a leader's StatefulSet of a LeaderWorkerSet has five."""
_KEPT: Final = 50_000
_UNREAD_SECONDS: Final = 10.0


class OwnerChains:
    """Resolves owner chains. Used from one event loop."""

    def __init__(self, client: KubeClient, *, monotonic: Callable[[], float]) -> None:
        self._client = client
        self._above: BoundedMap[str, OwnerLink | None] = BoundedMap(_KEPT)
        """By UID: the controller of an object, None if it has none."""
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._unread: ExpiringMap[str, None] = ExpiringMap(
            _KEPT, seconds=_UNREAD_SECONDS, monotonic=monotonic
        )

    async def resolve(self, obj: Mapping[str, Any], *, namespace: str) -> Workload | None:
        """Return the topmost controller of a pod; None if the pod has no controller.

        The caller sets a time limit; after a timeout, `known` has the links that were read.
        """
        link, found = controller_of(obj), None
        for _ in range(_MOST_LINKS):
            if link is None or link.workload.is_schedule:
                break
            found = link.workload
            link = await self._controller_of(link, namespace)
        return found

    def known(self, obj: Mapping[str, Any]) -> Workload | None:
        """Return the topmost controller that is known without a request."""
        link, found = controller_of(obj), None
        for _ in range(_MOST_LINKS):
            if link is None or link.workload.is_schedule:
                break
            found, link = link.workload, self._above.get(link.workload.uid)
        return found

    async def _controller_of(self, link: OwnerLink, namespace: str) -> OwnerLink | None:
        uid = link.workload.uid
        if uid not in self._above and uid not in self._unread:
            if uid not in self._reading:
                self._reading[uid] = asyncio.create_task(self._read(link, namespace))
            # Shielded: all pods of a controller share the request, also one that comes in too late.
            await asyncio.shield(self._reading[uid])
        return self._above.get(uid)

    async def _read(self, link: OwnerLink, namespace: str) -> None:
        uid = link.workload.uid
        try:
            obj = await self._client.request("GET", link.path(namespace), accept=METADATA_ONLY)
        except KubeError:
            obj = {}
        finally:
            del self._reading[uid]
        if mapping(obj.get("metadata")).get("uid") == uid:
            self._above[uid] = controller_of(obj)
        else:
            self._unread[uid] = None
