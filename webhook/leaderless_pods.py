"""Tells gated pods while no extender leads, because then no other program can.

Every webhook reads the Lease of the extenders every few seconds. If it does not change for some
time, no extender leads. Then one webhook, elected by a Lease of its own, writes an Event on gated
pods and their workloads. Writes are bounded: so many pods at once, and each pod once in half an
hour. They stop when an extender leads again.
"""

import asyncio
import logging
from collections.abc import Iterator
from typing import Final, NoReturn

from kube import marks
from kube.api.client import KubeClient, KubeError, Object
from kube.api.events import Event, EventWriter
from kube.api.leadership import Leadership, LeadershipSettings, read_record
from kube.read.workloads import Workload
from kube.values.objects import items, mapping, marks_of
from service.clock import Clock
from service.memory import ExpiringMap

logger = logging.getLogger(__name__)

ELECTION: Final = "cellgate-webhook-notices"
_LOOK_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 20.0
"""How long no extender may lead before pods are told: a change of leaders takes a few seconds."""
_AT_ONCE: Final = 250
"""Pods that are told in one look: the queue of Events has room for them and their workloads."""
_PAGE: Final = 500
_REPEAT_SECONDS: Final = 1800.0
_REMEMBERED: Final = 50_000
_REASON: Final = "NoExtenderLeads"
_MESSAGE: Final = (
    "no extender of Cellgate leads now, so gated pods are not planned; the pod keeps its age and "
    "is planned once an extender leads again; an admin checks the Deployment cellgate-extender"
)


class LeaderlessPods:
    """Watches the leadership of the extenders, and tells gated pods while there is none."""

    def __init__(
        self,
        client: KubeClient,
        *,
        namespace: str,
        election: Leadership,
        events: EventWriter,
        clock: Clock,
    ) -> None:
        """`election` decides which webhook writes."""
        self._client = client
        self._extenders = LeadershipSettings(
            name=marks.EXTENDER_LEADERSHIP, namespace=namespace, identity=""
        )
        self._election = election
        self._events = events
        self._clock = clock
        self._version = ""
        self._led_at = clock.monotonic()
        """When an extender was last seen to lead."""
        self._told = self._begin()

    def _begin(self) -> ExpiringMap[str, None]:
        """Return the objects that were told, by their UIDs: at first none."""
        return ExpiringMap(_REMEMBERED, seconds=_REPEAT_SECONDS, monotonic=self._clock.monotonic)

    async def run(self) -> NoReturn:
        """Look until cancelled."""
        try:
            while True:
                await asyncio.sleep(_LOOK_SECONDS)
                await self.look()
        finally:
            await self._election.resign()

    async def look(self) -> None:
        """Look once, and tell pods if no extender leads."""
        try:
            await self._read_lease()
            if self._clock.monotonic() - self._led_at < _PATIENCE_SECONDS:
                await self._stop()
            elif await self._election.attempt():
                await self._tell()
        except KubeError as exc:
            logger.info("leader of the extenders not known", extra={"error": str(exc)})
            self._led_at = self._clock.monotonic()  # the API server may be away for all of us

    async def _read_lease(self) -> None:
        try:
            record = read_record(await self._client.request("GET", self._extenders.path))
        except KubeError as exc:
            if not exc.is_missing:
                raise
            return
        if record.holder and record.version != self._version:
            self._led_at = self._clock.monotonic()
        self._version = record.version

    async def _stop(self) -> None:
        if self._election.is_leading:
            await self._election.resign()
            logger.info("an extender leads again")
            self._told = self._begin()

    async def _tell(self) -> None:
        """Write Events on gated pods that were not told, a bounded number of them."""
        told = 0
        query = {"fieldSelector": "spec.nodeName=,status.phase=Pending", "limit": str(_PAGE)}
        while told < _AT_ONCE:
            page = await self._client.request("GET", "/api/v1/pods", query=query)
            for pod in _gated(page):
                told += self._tell_pod(pod)
                if told == _AT_ONCE:
                    break
            after = mapping(page.get("metadata")).get("continue")
            if not after:
                break
            query["continue"] = str(after)
        if told:
            logger.warning("no extender leads; gated pods are told", extra={"pods": told})

    def _tell_pod(self, pod: Object) -> bool:
        """Tell a pod and its workload, each once; False if the pod was told before."""
        uid = pod["metadata"]["uid"]
        if uid in self._told:
            return False
        self._told[uid] = None
        event = Event.about(pod, reason=_REASON, message=_MESSAGE)
        self._events.write(event)
        mark = marks_of(pod, "annotations").get(marks.WORKLOAD_ANNOTATION)
        workload = Workload.parse(mark) if isinstance(mark, str) else None
        if workload is not None and workload.uid not in self._told:
            self._told[workload.uid] = None
            self._events.write(
                Event(
                    namespace=event.namespace,
                    api_version=f"{workload.group}/v1" if workload.group else "v1",
                    kind=workload.kind,
                    name=workload.name,
                    uid=workload.uid,
                    reason=_REASON,
                    message=_MESSAGE,
                )
            )
        return True


def build_election(
    client: KubeClient, *, namespace: str, identity: str, clock: Clock
) -> Leadership:
    """Build the election of the webhook that writes; it is asked every few seconds only."""
    settings = LeadershipSettings(
        name=ELECTION,
        namespace=namespace,
        identity=identity,
        duration_seconds=30,
        renew_within_seconds=20.0,
    )
    return Leadership(client, settings, monotonic=clock.monotonic, utc_now=clock.now)


def _gated(page: Object) -> Iterator[Object]:
    for pod in items(page.get("items")):
        gates = items(mapping(pod.get("spec")).get("schedulingGates"))
        if any(gate.get("name") == marks.QUEUED_GATE for gate in gates):
            yield dict(pod)
