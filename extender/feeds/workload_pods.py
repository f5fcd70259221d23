"""Pods by the workload that controls them, and since when each workload asks for its cells.

The author of a pod can name any workload as its controller. So an age belongs to a workload in one
namespace, and counts only for pods of the submitter whose pods were ended.
"""

from collections.abc import Iterable
from typing import Final

from kube.read.managed_pod import ManagedPod
from kube.read.workloads import WorkloadKey
from policy.submission import GangKey, PodUid, UserName
from service.memory import BoundedMap

ANY: Final = UserName("")
"""In place of a submitter that is not known: the age counts for the pods of all submitters."""
_MOST_AGES: Final = 100_000


class WorkloadPods:
    """The live pods of every workload."""

    def __init__(self) -> None:
        self._pods: dict[WorkloadKey, dict[PodUid, ManagedPod]] = {}
        self._asked: BoundedMap[tuple[WorkloadKey | GangKey, UserName], float] = BoundedMap(
            _MOST_AGES
        )

    def see(self, pod: ManagedPod) -> None:
        """A pod appeared or changed."""
        if pod.workload_key is not None:
            self._pods.setdefault(pod.workload_key, {})[pod.uid] = pod

    def forget(self, pod: ManagedPod) -> None:
        """A pod ended."""
        key = pod.workload_key
        members = self._pods.get(key, {}) if key is not None else {}
        if key is not None and members.pop(pod.uid, None) is not None and not members:
            del self._pods[key]

    def of(self, workload: WorkloadKey) -> Iterable[ManagedPod]:
        """Return the live pods of a workload."""
        return list(self._pods.get(workload, {}).values())

    def note_first_asked(self, workload: WorkloadKey, asked: float, *, submitter: UserName) -> None:
        """A workload has asked since then: earlier pods of it were ended for other gangs."""
        self._asked[workload, submitter] = asked

    def note_gang_asked(self, gang: GangKey, asked: float, *, submitter: UserName) -> None:
        """A gang of a workload has asked since then, if no earlier time is known."""
        key = gang, submitter
        self._asked[key] = min(asked, self._asked.get(key, asked))

    def first_asked(self, pod: ManagedPod) -> float:
        """Return when a pod's workload or gang first asked for its cells.

        The pod may be a later one.
        """
        keys = (pod.workload_key, pod.gang.key) if pod.workload_key else (pod.gang.key,)
        known = (
            self._asked.get((key, submitter), pod.created)
            for key in keys
            for submitter in (pod.charged_user, ANY)
        )
        return min(pod.created, *known)
