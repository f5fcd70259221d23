"""Members of gangs that have succeeded: their workload does not replace them.

A gang is complete without them. They are counted by workload, so that pods that an earlier
workload left behind under the same name of a gang do not count.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kube import marks
from kube.read.managed_pod import ManagedPod, PodPhase
from policy.submission import GangKey, PodUid


class _Finished(NamedTuple):
    gang: GangKey
    workload: str
    rank: str
    """What only one member of the gang has: its index, if the workload numbers its pods."""


class FinishedMembers:
    """The pods that have succeeded and still exist, by gang and workload."""

    def __init__(self) -> None:
        self._by_uid: dict[PodUid, _Finished] = {}
        self._ranks: dict[tuple[GangKey, str], dict[str, set[PodUid]]] = {}
        self.on_change: list[Callable[[GangKey, str, int], None]] = []
        """Callbacks that run with a gang, the UID of a workload, and their new count."""

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._by_uid

    def __iter__(self) -> Iterator[PodUid]:
        return iter(self._by_uid)

    def count(self, pod: ManagedPod) -> int:
        """Return how many members of a pod's gang have succeeded, in the same workload."""
        if pod.workload is None:
            return 0
        return len(self._ranks.get((pod.gang.key, pod.workload.uid), ()))

    def put(self, pod: ManagedPod) -> None:
        """Note a pod that has ended."""
        if pod.phase is not PodPhase.SUCCEEDED or pod.workload is None or pod.gang.size == 1:
            return
        rank = pod.labels.get(marks.JOB_INDEX_LABEL) or pod.uid
        one = _Finished(pod.gang.key, pod.workload.uid, rank)
        if self._by_uid.get(pod.uid) == one:
            return
        self.remove(pod.uid)
        self._by_uid[pod.uid] = one
        ranks = self._ranks.setdefault((one.gang, one.workload), {})
        ranks.setdefault(rank, set()).add(pod.uid)
        self._tell(one)

    def remove(self, uid: PodUid) -> None:
        """Forget a pod that is gone."""
        one = self._by_uid.pop(uid, None)
        if one is None:
            return
        key = (one.gang, one.workload)
        ranks = self._ranks[key]
        ranks[one.rank].remove(uid)
        if not ranks[one.rank]:
            del ranks[one.rank]
        if not ranks:
            del self._ranks[key]
        self._tell(one)

    def _tell(self, one: _Finished) -> None:
        count = len(self._ranks.get((one.gang, one.workload), ()))
        for tell in self.on_change:
            tell(one.gang, one.workload, count)
