"""Ages that are honest: what of a gang's time counts as waiting, and what it keeps.

The age of a gang counts from when its workload first asked.

- A gang whose pods failed and are created again keeps its age, like one that was preempted.
- While another controller's gate holds a pod, its time does not count.
- Time in which a user holds a gang does not count (`extender.planning.user_holds`).
- A workload that its owner suspends while it waits keeps what it has waited; the time until it is
  resumed does not count. Time in which Cellgate itself suspended it does
  (`extender.outcomes.reclaims`).

What was held, and waits of suspended gangs, are known as long as this process runs: after that, the
age counts from the creation of the pods that exist.
"""

from collections.abc import Callable
from typing import Final

from extender.feeds.pod_feed import PodSink
from kube.api.client import Object
from kube.read.managed_pod import ManagedPod, PodPhase
from policy.submission import PodUid
from service.clock import Clock
from service.memory import BoundedMap

_JOB: Final = ("batch", "Job")
_MOST: Final = 100_000


class WaitingAges:
    """Follows pods, and notes what counts of their waits."""

    def __init__(
        self, pods: PodSink, *, note_retried: Callable[[ManagedPod], None], clock: Clock
    ) -> None:
        """`note_retried` keeps the age of a gang with a workload."""
        self._pods = pods
        self._note_retried = note_retried
        self._clock = clock
        self._held: set[PodUid] = set()
        self._failed: BoundedMap[PodUid, None] = BoundedMap(_MOST)
        pods.on_appear.insert(0, self._see)  # before the planner is told of the pod
        pods.on_end.append(self._note_end)
        pods.on_seen.append(self._see_last)

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _see(self, pod: ManagedPod) -> None:
        """Count a pod from the moment at which no other gate holds it any more."""
        if pod.is_held_by_others:
            self._held.add(pod.uid)
        elif pod.uid in self._held:
            self._held.discard(pod.uid)
            self._pods.workloads.note_counts_from(pod.uid, self._now())

    def _note_end(self, pod: ManagedPod) -> None:
        """Keep what a gang has waited, in case that its owner suspended it."""
        self._held.discard(pod.uid)
        if pod.gang.key.owner and pod.node is None:
            now = self._now()
            waited = now - self._pods.workloads.first_asked(pod)
            self._pods.workloads.note_waited(pod, max(0.0, waited), until=now)
        elif pod.gang.key.owner:
            self._pods.workloads.forget_waited(pod)  # it has got what it waited for
        self._pods.workloads.forget_counts(pod.uid)

    def _see_last(self, pod: ManagedPod, _: Object) -> None:
        """Keep the age of a gang whose pod failed: it is created again."""
        if pod.phase is not PodPhase.FAILED or pod.uid in self._failed:
            return
        self._failed[pod.uid] = None
        if pod.gang.key.owner:
            self._note_retried(pod)
        elif pod.workload_key is not None and _is_job(pod):
            asked = self._pods.workloads.first_asked(pod)
            self._pods.note_first_asked(pod.workload_key, asked, submitter=pod.charged_user)


def _is_job(pod: ManagedPod) -> bool:
    """Whether its workload is a Job: another pod of it is a retry, and none is added later."""
    return pod.workload is not None and (pod.workload.group, pod.workload.kind) == _JOB
