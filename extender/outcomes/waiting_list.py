"""Gangs and pods that wait: for which reason, and since when.

A gang that the planner places waits as a whole: one entry, which changes only with the reason. A
pod that was never gated waits by itself, because kube-scheduler asks about one pod at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final

from extender.feeds.requests import single_gang
from kube.read.managed_pod import ManagedPod
from policy.submission import GangKey, NodeName, PodUid, VcName
from service.memory import BoundedMap

_MOST_PODS: Final = 100_000
"""More pods than a cluster has; beyond, the oldest entry is dropped until the next question."""


@dataclass(slots=True, kw_only=True)
class WaitingEntry:
    """A gang or a pod that waits, and why."""

    uid: PodUid
    """The pod that carries the Event: the pod that waits, or one member of the gang."""
    namespace: str
    name: str
    gang: GangKey
    vc: VcName
    code: str
    reason: str
    change: str
    """What would have to change."""
    since: datetime
    """When it began to wait for this reason."""


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
        self._gangs: dict[GangKey, WaitingEntry] = {}
        self.pods: BoundedMap[PodUid, RefusedPod] = BoundedMap(_MOST_PODS)
        """Pods that kube-scheduler asks about."""

    def __iter__(self) -> Iterator[WaitingEntry]:
        return chain(self._gangs.values(), self.pods.values())

    def __len__(self) -> int:
        return len(self._gangs) + len(self.pods)

    def of_gang(self, gang: GangKey) -> WaitingEntry | None:
        """Return the entry of a gang that waits as a whole."""
        return self._gangs.get(gang)

    def of_pod(self, pod: ManagedPod) -> WaitingEntry | None:
        """Return the entry that says why a pod waits: its own, or that of its gang."""
        own = self.pods.get(pod.uid) or self._gangs.get(single_gang(pod))
        return own or self._gangs.get(pod.gang.key)

    def put_pod(self, pod: RefusedPod) -> bool:
        """Note that a pod waits; True if it is for another reason than before."""
        before = self.pods.get(pod.uid)
        self.pods[pod.uid] = pod
        if before is not None and before.code == pod.code:
            pod.since = before.since
            return False
        return True

    def put_gang(self, entry: WaitingEntry) -> bool:
        """Note that a gang waits; False, and no change, if it is for the same reason as before."""
        before = self._gangs.get(entry.gang)
        if before is not None and before.code == entry.code:
            return False
        self._gangs[entry.gang] = entry
        return True

    def remove_pod(self, uid: PodUid) -> WaitingEntry | None:
        """A pod does not wait any more; return its entry, if it waited."""
        return self.pods.pop(uid, None)

    def remove_gang(self, gang: GangKey) -> WaitingEntry | None:
        """A gang does not wait any more; return its entry, if it waited."""
        return self._gangs.pop(gang, None)
