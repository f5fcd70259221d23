"""Gangs and pods that wait: for which reason, and since when.

A gang that the planner places waits as a whole: one entry, which changes with the reason. A
pod that was never gated waits by itself, because kube-scheduler asks about one pod at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Final

from extender.cells.model import Reason, ReasonCode
from extender.feeds.requests import single_gang
from kube.read.managed_pod import ManagedPod
from policy.submission import GangKey, NodeName, PodUid
from service.memory import BoundedMap

_MOST_PODS: Final = 100_000
"""More pods than a cluster has; beyond, the oldest entry is dropped until the next question."""


@dataclass(slots=True, kw_only=True)
class WaitingEntry:
    """A gang or a pod that waits, and why."""

    gang: GangKey
    pod: ManagedPod
    """The pod that carries the Event: the pod that waits, or one member of the gang."""
    reason: Reason
    since: datetime
    """When it began to wait for this reason."""
    told: dict[ReasonCode, float] = field(default_factory=dict)
    """When the last Event was written for each reason, by the monotonic clock."""


@dataclass(slots=True, kw_only=True)
class RefusedPod(WaitingEntry):
    """A pod that kube-scheduler asked about and that has no place."""

    offered: Sequence[NodeName]
    asked: float = 0.0
    """When kube-scheduler asked last, by the monotonic clock."""
    version: int = -1
    """Version of the cluster at the last look."""
    victims: tuple[GangKey, ...] = ()
    """Gangs that have to end before it can start."""
    asks_to_preempt: bool = False
    """It needs victims, and kube-scheduler has not sent `preempt` for it so far."""


class WaitingList:
    """All gangs and pods that wait.

    Bounded: gangs are removed with their last pod, and only so many pods are kept.
    """

    def __init__(self) -> None:
        self.gangs: dict[GangKey, WaitingEntry] = {}
        """Gangs that the planner places."""
        self.pods: BoundedMap[PodUid, RefusedPod] = BoundedMap(_MOST_PODS)
        """Pods that kube-scheduler asks about."""

    def __iter__(self) -> Iterator[WaitingEntry]:
        return chain(self.gangs.values(), self.pods.values())

    def __len__(self) -> int:
        return len(self.gangs) + len(self.pods)

    def of_pod(self, pod: ManagedPod) -> WaitingEntry | None:
        """Return the entry that says why a pod waits: its own, or that of its gang."""
        own = self.pods.get(pod.uid) or self.gangs.get(single_gang(pod))
        return own or self.gangs.get(pod.gang.key)

    def put_pod(self, entry: RefusedPod) -> bool:
        """Note that a pod waits; True if it is for another reason than before."""
        before = self.pods.get(entry.pod.uid)
        self.pods[entry.pod.uid] = entry
        if before is None or before.reason.code is not entry.reason.code:
            return True
        entry.since = before.since
        return False

    def put_gang(self, entry: WaitingEntry) -> bool:
        """Note that a gang waits; False, and no change, if it is for a reason of the same code."""
        before = self.gangs.get(entry.gang)
        if before is not None and before.reason.code is entry.reason.code:
            return False
        if before is not None:
            entry.told = before.told
        self.gangs[entry.gang] = entry
        return True
