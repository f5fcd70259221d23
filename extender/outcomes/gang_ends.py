"""Gangs that Cellgate ended for other gangs: reported to their workload, the log and `explain`.

The pods of a victim are soon gone, and with them their Events and conditions. Its workload and the
decision log keep the answer to the question for which gang it ended.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from extender.cluster.cluster import Cluster
from extender.outcomes.pod_events import PodEvents
from kube.read.managed_pod import ManagedPod, charged_gang
from kube.read.suspension import ReclaimMark
from kube.read.workloads import Workload
from policy.submission import GangKey
from service.clock import Clock
from service.memory import BoundedMap
from state.log.records import RowKind

_REMEMBERED: Final = 10_000


class EndWay(StrEnum):
    """How a gang was ended."""

    EVICTED = "evicted"
    SUSPENDED = "suspended"


@dataclass(frozen=True, slots=True, kw_only=True)
class GangEnd:
    """One end of a gang for another gang."""

    workload: Workload | None
    why: str
    way: EndWay
    at: datetime


class GangEnds:
    """Reports the ends of gangs, each once, and remembers the last ones."""

    def __init__(self, *, cluster: Cluster, events: PodEvents, clock: Clock) -> None:
        self._cluster = cluster
        self._events = events
        self._clock = clock
        self._last: BoundedMap[GangKey, GangEnd] = BoundedMap(_REMEMBERED)
        self._warned: BoundedMap[GangKey, str] = BoundedMap(_REMEMBERED)
        """Why gangs were told that they will be ended."""
        self._by_name: BoundedMap[str, GangKey] = BoundedMap(_REMEMBERED)
        """Gangs by `namespace/name` of the gang, of its workload and of its pods."""
        self._charges: BoundedMap[GangKey, GangKey] = BoundedMap(_REMEMBERED)
        """Names under which gangs were charged, where these are others."""

    def evicted(self, pod: ManagedPod, *, why: str, is_new: bool) -> None:
        """A pod of a gang was ended by itself; `is_new` if by this leader."""
        if pod.workload is not None:
            self._events.workload_evicted(pod.workload, namespace=pod.namespace, why=why)
        if is_new:
            self._note(pod, why, EndWay.EVICTED)

    def warned(self, pod: ManagedPod, *, why: str, seconds: float) -> None:
        """A pod of a gang will be ended after some time."""
        if pod.workload is not None:
            self._events.workload_warned(
                pod.workload, namespace=pod.namespace, why=why, seconds=seconds
            )
        if self._warned.get(pod.gang.key) == why:
            return  # the other pods of the gang
        self._warned[pod.gang.key] = why
        details = {"pod": pod.display_name, "graceSeconds": seconds}
        self._cluster.journal.note(
            RowKind.PREEMPTION, str(pod.gang.key), "warned", why, pod_uid=pod.uid, details=details
        )

    def suspended(self, pod: ManagedPod, workload: Workload, *, mark: ReclaimMark) -> None:
        """The workload of a gang was suspended, and will be resumed."""
        self._events.workload_suspended(workload, namespace=pod.namespace, mark=mark)
        details = {"workload": workload.mark, "firstAsked": mark.first_asked, "times": mark.times}
        self._note(pod, mark.why, EndWay.SUSPENDED, details=details, key=UUID(mark.decision))

    def resumed(self, workload: Workload, *, namespace: str) -> None:
        """A workload was resumed."""
        self._events.workload_resumed(workload, namespace=namespace)

    def _note(
        self,
        pod: ManagedPod,
        why: str,
        way: EndWay,
        *,
        details: Mapping[str, Any] | None = None,
        key: UUID | None = None,
    ) -> None:
        gang = pod.gang.key
        self.remember(pod)
        last = self._last.get(gang)
        if last is not None and (last.why, last.workload) == (why, pod.workload) and key is None:
            return  # the other pods of the gang
        self._last[gang] = GangEnd(workload=pod.workload, why=why, way=way, at=self._clock.now())
        workload = {"workload": pod.workload.mark} if pod.workload is not None else {}
        self._cluster.journal.note(
            RowKind.PREEMPTION,
            str(gang),
            str(way),
            why,
            pod_uid=pod.uid,
            details={"pod": pod.display_name, **workload, **(details or {})},
            **({"key": key} if key is not None else {}),
        )

    def remember(self, pod: ManagedPod) -> None:
        """Remember the gang of a pod that ended, however it did: its name may be asked for."""
        self._by_name[str(pod.gang.key)] = self._by_name[pod.display_name] = pod.gang.key
        if pod.workload is not None:
            self._by_name[f"{pod.namespace}/{pod.workload.name}"] = pod.gang.key
        if (charged := charged_gang(pod)) != pod.gang.key:
            self._charges[pod.gang.key] = charged

    def charged_as(self, gang: GangKey) -> GangKey:
        """Return the name under which a gang was charged, which its admission has in the log."""
        return self._charges.get(gang) or gang

    def gang_of(self, name: str) -> GangKey | None:
        """Return the gang that had a pod or a workload of this `namespace/name`, or its own."""
        return self._by_name.get(name)

    def find(self, name: str) -> GangEnd | None:
        """Return the last end of a gang, by `namespace/name` of it, its workload or a pod."""
        gang = self._by_name.get(name)
        return self._last.get(gang) if gang is not None else None
