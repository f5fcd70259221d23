"""Pods by the workload that controls them, and since when each workload asks for its cells."""

from collections.abc import Iterable
from typing import Final

from kube.read.managed_pod import ManagedPod
from policy.submission import GangKey, PodUid
from service.memory import BoundedMap

_MOST_AGES: Final = 100_000


class WorkloadPods:
    """The live pods of every workload, by the UID of the workload."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[PodUid, ManagedPod]] = {}
        self._asked: BoundedMap[str, float] = BoundedMap(_MOST_AGES)
        self._gangs_asked: BoundedMap[GangKey, float] = BoundedMap(_MOST_AGES)

    def see(self, pod: ManagedPod) -> None:
        """A pod appeared or changed."""
        if pod.workload is not None:
            self._pods.setdefault(pod.workload.uid, {})[pod.uid] = pod

    def forget(self, pod: ManagedPod) -> None:
        """A pod ended."""
        uid = pod.workload.uid if pod.workload is not None else ""
        members = self._pods.get(uid, {})
        if members.pop(pod.uid, None) is not None and not members:
            del self._pods[uid]

    def of(self, uid: str) -> Iterable[ManagedPod]:
        """Return the live pods of a workload."""
        return list(self._pods.get(uid, {}).values())

    def note_first_asked(self, uid: str, asked: float) -> None:
        """A workload has asked since then: earlier pods of it were ended for other gangs."""
        self._asked[uid] = asked

    def note_gang_asked(self, gang: GangKey, asked: float) -> None:
        """A gang of a workload has asked since then, if no earlier time is known."""
        self._gangs_asked[gang] = min(asked, self._gangs_asked.get(gang, asked))

    def first_asked(self, pod: ManagedPod) -> float:
        """Return when a pod's workload or gang first asked for its cells.

        The pod may be a later one.
        """
        uid = pod.workload.uid if pod.workload is not None else ""
        workload = self._asked.get(uid, pod.created)
        return min(pod.created, workload, self._gangs_asked.get(pod.gang.key, pod.created))
