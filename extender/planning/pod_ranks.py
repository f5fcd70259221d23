"""The rank of a gang that waits for quota, from its pods: the same order as for cells."""

from collections.abc import Sequence

from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import ToRequest
from extender.planning.held_pods import gang_of
from extender.queue.order.facts import QueueFacts
from extender.queue.order.gang_order import GangOrder
from extender.queue.order.listing import Ranked
from extender.queue.order.standing import Standing
from extender.queue.ports import RunTimes
from kube.read.managed_pod import ManagedPod
from policy.errors import RequestError
from policy.topology import PinnedCellId
from service.clock import Clock


class PodRanks:
    """Ranks gangs by their pods."""

    def __init__(
        self,
        order: GangOrder,
        *,
        pods: PodSink,
        run_times: RunTimes,
        to_request: ToRequest,
        clock: Clock,
    ) -> None:
        self.order = order
        self._pods = pods
        self.run_times = run_times
        self._to_request = to_request
        self._clock = clock

    def standing(self, pods: Sequence[ManagedPod]) -> Standing:
        """Return the level and the rank of a gang; its oldest pod is the first."""
        return self.order.standing(self.facts(pods), now=self._clock.now().timestamp())

    def ranked(self, pods: Sequence[ManagedPod]) -> Ranked:
        """Return what is known of a gang, and its rank."""
        return self.facts(pods), self.standing(pods)

    def facts(self, pods: Sequence[ManagedPod]) -> QueueFacts:
        """Return what the order knows of a gang; its oldest pod is the first."""
        first = pods[0]
        counted = first.leaf_count if first.is_charged_alone else first.gang_leaf_count
        gang = gang_of(first)
        return QueueFacts(
            gang=gang,
            user=first.charged_user,
            group=first.charged_group,
            vc=first.vc,
            class_name=first.charged_class or "",
            priority=self._priority(first),
            leaf_cells=counted or sum(pod.leaf_count for pod in pods),
            leaf_type=first.leaf_type,
            pinned=_pinned(first),
            asked=self._pods.workloads.first_asked(first),
            run_time=self.run_times.expected(gang),
            start_by=first.start_by,
        )

    def _priority(self, pod: ManagedPod) -> int:
        try:
            return self._to_request(pod).priority
        except RequestError:
            return 0


def _pinned(pod: ManagedPod) -> PinnedCellId | None:
    cell = pod.hived.pinned_cell if pod.hived else None
    return PinnedCellId(cell) if cell else None
