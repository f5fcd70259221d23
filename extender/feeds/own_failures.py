"""Nodes on which members of a workload failed at start: its retries avoid them for a while.

Every replica reads the failures from the pods that exist; `policy.quarantine` says which nodes a
workload blames. One workload alone takes a node away from no other.
"""

from typing import Final

from extender.feeds.pod_feed import PodSink
from kube.read.managed_pod import ManagedPod
from kube.read.start_failures import failing_workload
from policy.quarantine import StartFailure, find_avoided
from policy.submission import NodeName, PodUid
from service.clock import Clock
from service.memory import BoundedMap

_MOST_WORKLOADS: Final = 10_000
_MOST_FAILURES: Final = 32


class OwnFailures:
    """The latest failures of each workload."""

    def __init__(self, pods: PodSink, *, clock: Clock) -> None:
        self._clock = clock
        self._of: BoundedMap[str, BoundedMap[tuple[PodUid, float], StartFailure]] = BoundedMap(
            _MOST_WORKLOADS
        )
        pods.on_failure.append(self._note)

    def _note(self, pod: ManagedPod, failure: StartFailure) -> None:
        own = self._of.get(failure.workload)
        if own is None:
            own = self._of[failure.workload] = BoundedMap(_MOST_FAILURES)
        own[pod.uid, failure.at] = failure

    def nodes_to_avoid(self, pod: ManagedPod) -> tuple[NodeName, ...]:
        """Return the nodes that a pod should not get if others suit as well."""
        own = self._of.get(failing_workload(pod))
        if own is None:
            return ()
        return tuple(find_avoided(own.values(), now=self._clock.now().timestamp()))
