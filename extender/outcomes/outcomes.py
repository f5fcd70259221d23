"""What follows from a decision for the owner: the pod waits and is told why, or has its place."""

from collections.abc import Sequence

from extender.cells.model import Place, Preempt, Reject, Wait
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.outcomes.announcer import Announcer
from extender.outcomes.waiting_pods import Waiting, WaitingPods
from kube.read.pods import ManagedPod
from policy.submission import NodeName
from service.clock import Clock


class Outcomes:
    """Keeps the list of those who wait, and tells people of changes."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        waiting: WaitingPods,
        announcer: Announcer,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._waiting = waiting
        self._announcer = announcer
        self._clock = clock
        pods.on_end.append(lambda pod: waiting.remove(pod.uid))
        pods.on_appear.append(self._note_bound)

    def _note_bound(self, pod: ManagedPod) -> None:
        """Whoever bound a pod: it does not wait any more."""
        if pod.node is not None:
            self._waiting.remove(pod.uid)

    def placed(self, pod: ManagedPod, decision: Place) -> None:
        """A pod has its place."""
        if self._waiting.get(pod.uid) is not None:
            self._announcer.placed(pod, decision)
            self._waiting.remove(pod.uid)
        for gang in decision.downgraded:
            members = [self._pods.get(uid) for uid in self._cluster.members.of_gang(gang)]
            self._announcer.downgraded(
                [member for member in members if member is not None], by=decision.request.gang
            )

    def waits(
        self,
        pod: ManagedPod,
        decision: Wait | Reject | Preempt,
        *,
        offered: Sequence[NodeName],
        asks_to_preempt: bool = False,
    ) -> None:
        """A pod has no place.

        kube-scheduler first offers the one node that it has nominated: what is wrong with that one
        is no news about a pod that waits already, unless it can have no other.
        """
        before = self._waiting.get(pod.uid)
        if before is not None and len(offered) == 1 < len(before.offered):
            return
        waiting = Waiting(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            gang=decision.request.gang,
            vc=pod.vc,
            code=str(decision.reason.code),
            reason=decision.reason.text,
            change=decision.reason.change,
            since=self._clock.now(),
            offered=offered,
            asked=self._clock.monotonic(),
            version=self._cluster.version,
            victims=decision.victims if isinstance(decision, Preempt) else (),
            asks_to_preempt=asks_to_preempt and pod.may_preempt,
        )
        if self._waiting.put(waiting):
            self._announcer.waits(waiting)
