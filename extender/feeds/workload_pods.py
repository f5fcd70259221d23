"""Pods by the workload that controls them, and since when each workload asks for its cells.

The author of a pod can name any workload as its controller. So an age belongs to a workload in one
namespace, and counts only for pods of the submitter whose pods were ended.
"""

from collections.abc import Callable, Iterable
from typing import Final

from kube.read.managed_pod import ManagedPod
from kube.read.workloads import WorkloadKey
from policy.submission import GangKey, PodUid, UserName
from service.memory import BoundedMap

ANY: Final = UserName("")
"""In place of a submitter that is not known: the age counts for the pods of all submitters."""
_MOST_AGES: Final = 100_000
_LATEST_SECONDS: Final = 2.0
"""Times of creation are whole seconds, of another clock: a pod that is this little older than the
end of another one was created after it."""


class WorkloadPods:
    """The live pods of every workload."""

    def __init__(self) -> None:
        self._pods: dict[WorkloadKey, dict[PodUid, ManagedPod]] = {}
        self._asked: BoundedMap[tuple[WorkloadKey | GangKey, UserName], float] = BoundedMap(
            _MOST_AGES
        )
        self._waited: BoundedMap[tuple[GangKey, UserName], tuple[float, float]] = BoundedMap(
            _MOST_AGES
        )
        """What gangs whose pods are gone have waited, and until when."""
        self.held_seconds: Callable[[ManagedPod], float] = lambda pod: pod.held_seconds
        """Tells for how long users have held the gang of a pod."""
        self._counts_from: dict[PodUid, float] = {}
        """Since when pods count that another gate held before."""

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

    def note_counts_from(self, uid: PodUid, at: float) -> None:
        """The time of a pod before this moment does not count: another gate held it."""
        self._counts_from[uid] = at

    def forget_counts(self, uid: PodUid) -> None:
        """A pod ended."""
        self._counts_from.pop(uid, None)

    def note_waited(self, pod: ManagedPod, seconds: float, *, until: float) -> None:
        """A pod of a gang ended, for which it had waited: later pods go on from there."""
        key = pod.gang.key, pod.charged_user
        self._waited[key] = max(seconds, self._waited.get(key, (0.0, 0.0))[0]), until

    def forget_waited(self, pod: ManagedPod) -> None:
        """A gang has got what it waited for."""
        self._waited.pop((pod.gang.key, pod.charged_user), None)

    def _counted(self, pod: ManagedPod) -> float:
        """Return since when a pod itself counts, with what its gang had waited before."""
        since = max(pod.created, self._counts_from.get(pod.uid, 0.0))
        waited, until = self._waited.get((pod.gang.key, pod.charged_user), (0.0, 0.0))
        return since - waited if pod.created >= until - _LATEST_SECONDS else since

    def first_asked(self, pod: ManagedPod) -> float:
        """Return when a pod's workload or gang first asked for its cells.

        The pod may be a later one. Time that does not count is left out.
        """
        own = self._counted(pod)
        keys = (pod.workload_key, pod.gang.key) if pod.workload_key else (pod.gang.key,)
        known = (
            self._asked.get((key, submitter), own)
            for key in keys
            for submitter in (pod.charged_user, ANY)
        )
        return min(own, *known) + self.held_seconds(pod)
