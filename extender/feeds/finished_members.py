"""Members of gangs that have succeeded: their workload does not replace them.

A gang is complete without them. They are counted by workload, so that pods that an earlier
workload left behind under the same name of a gang do not count. A member counts also after its pod
was deleted, as a drained node deletes pods that have succeeded, until it is created again or its
controller is replaced by another one of the same name. Pods without a workload count while they
exist: after that, a pod of the same gang may belong to another run.

A member that is created later than others and asks for no leaf cells, such as the launcher of an
MPIJob, is not counted: the gang starts without it, whether it has succeeded or not.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from extender.queue.model import LeafCounts
from kube import marks
from kube.read.managed_pod import ManagedPod, PodPhase
from policy.submission import GangKey, PodUid
from service.memory import BoundedMap

_MOST_DELETED: Final = 10_000
"""Gangs that are remembered although none of their succeeded pods exists any more."""

_Key = tuple[GangKey, str]
"""A gang, and the UID of a workload."""
_Rank = tuple[str, str, int]
"""The controller's name, what only one of its pods has (an index, or a name), and leaf cells."""


@dataclass(slots=True)
class _Done:
    """The members of a gang that have succeeded."""

    pods: dict[_Rank, set[PodUid]] = field(default_factory=dict)
    """The pods that exist, often one; none if they were deleted."""
    controllers: dict[str, str] = field(default_factory=dict)
    """The UIDs of the controllers, by name."""
    leaf_counts: Counter[int] = field(default_factory=Counter)
    """How many of them ask for each number of leaf cells."""

    def add(self, rank: _Rank, uid: PodUid) -> None:
        """Note a pod that has succeeded."""
        if rank not in self.pods:
            self.leaf_counts[rank[2]] += 1
        self.pods.setdefault(rank, set()).add(uid)

    def drop(self, rank: _Rank) -> None:
        """Forget a member."""
        del self.pods[rank]
        self.leaf_counts[rank[2]] -= 1


class FinishedMembers:
    """The members that have succeeded, by gang and workload."""

    def __init__(self) -> None:
        self._by_uid: dict[PodUid, tuple[_Key, _Rank, str]] = {}
        """The gang, the rank and the UID of the controller of each pod that exists."""
        self._done: dict[_Key, _Done] = {}
        self._deleted: BoundedMap[_Key, None] = BoundedMap(_MOST_DELETED)
        self.on_change: list[Callable[[GangKey, str, LeafCounts], None]] = []
        """Callbacks that run with a gang, the UID of a workload, and their finished members."""

    def __iter__(self) -> Iterator[PodUid]:
        return iter(self._by_uid)

    def of_gang(self, pod: ManagedPod) -> LeafCounts:
        """Return the members of a pod's gang that have succeeded, in the same workload."""
        return self._finished(_key(pod))

    def put(self, pod: ManagedPod) -> None:
        """Note a pod that has ended."""
        if not _is_counted(pod) or pod.uid in self._by_uid:
            return
        key, rank = _key(pod), _rank(pod)
        self._drop_replaced(key, pod)
        done = self._done.setdefault(key, _Done())
        done.controllers[rank[0]] = _controller_uid(pod)
        done.add(rank, pod.uid)
        self._by_uid[pod.uid] = key, rank, _controller_uid(pod)
        self._deleted.pop(key, None)
        self._tell(key)

    def observe(self, pod: ManagedPod) -> None:
        """Note a pod that has not ended: its member has not succeeded."""
        key, rank = _key(pod), _rank(pod)
        done = self._done.get(key)
        if done is None:
            return
        before = len(done.pods)
        self._drop_replaced(key, pod)
        if not done.pods.get(rank, (pod.uid,)):
            done.drop(rank)
        if len(done.pods) != before:
            self._tell(key)

    def _drop_replaced(self, key: _Key, pod: ManagedPod) -> None:
        """Drop the members of an earlier controller of the same name."""
        done, name = self._done.get(key), _rank(pod)[0]
        uid = _controller_uid(pod)
        if done is None or done.controllers.get(name, uid) == uid:
            return
        done.controllers[name] = uid
        for rank in [rank for rank, uids in done.pods.items() if rank[0] == name and not uids]:
            done.drop(rank)

    def remove(self, uid: PodUid) -> None:
        """A pod was deleted."""
        if uid not in self._by_uid:
            return
        key, rank, controller = self._by_uid.pop(uid)
        done = self._done[key]
        done.pods[rank].discard(uid)
        is_of_workload = bool(key[1])
        if not done.pods[rank] and (not is_of_workload or done.controllers[rank[0]] != controller):
            done.drop(rank)
            self._tell(key)
        if any(done.pods.values()):
            return
        if not done.pods:
            del self._done[key]
            return
        if self._deleted.is_full:
            oldest = next(iter(self._deleted))
            del self._done[oldest]
            self._tell(oldest)
        self._deleted[key] = None

    def _finished(self, key: _Key) -> LeafCounts:
        done = self._done.get(key)
        return +done.leaf_counts if done else {}

    def _tell(self, key: _Key) -> None:
        for tell in self.on_change:
            tell(*key, self._finished(key))


def _is_counted(pod: ManagedPod) -> bool:
    is_late_helper = pod.leaf_count == 0 and 0 in pod.gang.late
    return pod.phase is PodPhase.SUCCEEDED and pod.gang.size != 1 and not is_late_helper


def _key(pod: ManagedPod) -> _Key:
    return pod.gang.key, pod.workload.uid if pod.workload else ""


def _rank(pod: ManagedPod) -> _Rank:
    name = pod.controller.name if pod.controller else ""
    return name, pod.labels.get(marks.JOB_INDEX_LABEL) or pod.name, pod.leaf_count


def _controller_uid(pod: ManagedPod) -> str:
    return pod.controller.uid if pod.controller else ""
