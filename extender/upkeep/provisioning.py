"""Nodes are asked for on behalf of gangs that wait for nodes.

An autoscaler does not see pods behind the gate. With `--provisioning-class` the leader creates a
ProvisioningRequest for each gang that `extender.cells.new_nodes` chooses, and takes it back when
the gang no longer waits for nodes. A request that the autoscaler gave up is made anew after some
minutes. Nothing depends on the answer: new nodes are seen as all nodes are.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, NoReturn, Protocol

from extender.cells.new_nodes import WaitingGang, choose_for_new_nodes
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import ToRequest
from extender.outcomes.pod_events import PodEvents
from extender.outcomes.waiting_list import WaitingEntry, WaitingList
from kube.api.binder import PodRef
from kube.api.client import KubeError
from kube.api.provisioning_requests import FoundRequest, PodSet, request_name
from kube.read.managed_pod import ManagedPod
from policy.errors import BackendError, RequestError
from policy.submission import GangKey
from service.clock import Clock

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 60.0
"""Where the kind or the right is missing, perhaps for as long as the process runs."""
_NOT_INSTALLED: Final = (403, 404)
_AGAIN_SECONDS: Final = 300.0
"""A request that the autoscaler gave up stays for this long before it is made anew."""


class Requests(Protocol):
    """What asking for nodes needs of Kubernetes."""

    async def list(self) -> list[FoundRequest]:
        """Return all requests of ours."""

    async def create(self, gang: GangKey, pod_sets: Sequence[PodSet]) -> str:
        """Ask for nodes for all pods of a gang; return the name of the request."""

    async def delete(self, request: FoundRequest) -> None:
        """Take a request back."""


class Provisioning:
    """Keeps one request for each gang that waits for nodes."""

    def __init__(
        self,
        requests: Requests,
        *,
        waiting: WaitingList,
        pods: PodSink,
        to_request: ToRequest,
        is_open: Callable[[], bool],
        events: PodEvents,
        clock: Clock,
    ) -> None:
        self._requests = requests
        self._waiting = waiting
        self._pods = pods
        self._to_request = to_request
        self._is_open = is_open
        self._events = events
        self._clock = clock

    async def run(self) -> NoReturn:
        """Compare the requests with the waiting gangs every few seconds, until cancelled."""
        while True:
            pause = _EVERY_SECONDS
            try:
                await self.step()
            except BackendError as exc:
                logger.warning("nodes not asked for, will retry", extra={"error": str(exc)})
                if isinstance(exc, KubeError) and exc.status in _NOT_INSTALLED:
                    pause = _PAUSE_SECONDS
            await asyncio.sleep(pause)

    async def step(self) -> None:
        """Create the requests that are missing, and delete those that are not needed any more."""
        now = self._clock.now()
        gangs = choose_for_new_nodes(self._waiting_gangs(now), is_open=self._is_open())
        wanted = {(gang.namespace, request_name(gang)): gang for gang in gangs}
        for request in await self._requests.list():
            key = (request.namespace, request.name)
            age = (now - request.created).total_seconds()
            if key not in wanted or (request.is_over and age >= _AGAIN_SECONDS):
                await self._requests.delete(request)
            wanted.pop(key, None)
        for gang in wanted.values():
            await self._try_for(gang)

    def _waiting_gangs(self, now: datetime) -> list[WaitingGang]:
        entries = list(self._waiting.gangs.values())
        return [waits for entry in entries if (waits := self._read(entry, now)) is not None]

    def _read(self, entry: WaitingEntry, now: datetime) -> WaitingGang | None:
        try:
            priority = self._to_request(entry.pod).priority
        except RequestError:  # a class that is gone: its reason says so
            return None
        waited = (now - entry.since).total_seconds()
        return WaitingGang(
            gang=entry.gang, reason=entry.reason, priority=priority, waited_seconds=waited
        )

    async def _try_for(self, gang: GangKey) -> None:
        """Ask for nodes for a gang; what its own namespace refuses concerns no other gang."""
        try:
            await self._ask_for(gang)
        except KubeError as exc:
            if not exc.status:
                raise
            logger.warning("request refused", extra={"gang": str(gang), "error": str(exc)})

    async def _ask_for(self, gang: GangKey) -> None:
        entry = self._waiting.gangs.get(gang)
        members = [pod for pod in self._pods.of_gang(gang) if pod.is_gated and not pod.is_deleting]
        if entry is None or not members:
            return
        name = await self._requests.create(gang, _pod_sets(members))
        self._events.asked_for_nodes(entry.pod, request=name)
        logger.info("nodes asked for", extra={"gang": str(gang), "request": name})


def _pod_sets(members: Sequence[ManagedPod]) -> list[PodSet]:
    """Group members by what they ask for."""
    alike: dict[int, list[ManagedPod]] = defaultdict(list)
    for pod in sorted(members, key=lambda pod: (-pod.leaf_count, pod.name)):
        alike[pod.leaf_count].append(pod)
    return [PodSet(count=len(pods), sample=PodRef.of(pods[0])) for pods in alike.values()]
