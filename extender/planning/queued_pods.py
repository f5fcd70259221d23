"""Pods as the planner sees them: what they ask for, and what they need of their nodes."""

from extender.feeds.own_failures import OwnFailures
from extender.feeds.pod_feed import PodSink
from extender.feeds.pod_needs import PodNeeds
from extender.feeds.requests import (
    ToRequest,
    member_rank,
    to_placement,
    to_single_request,
)
from extender.queue.model import QueuedPod
from kube.read.managed_pod import ManagedPod


class QueuedPods:
    """Translates pods for the planner."""

    def __init__(
        self, pods: PodSink, *, needs: PodNeeds, to_request: ToRequest, failures: OwnFailures
    ) -> None:
        self._pods = pods
        self._failures = failures
        self._needs = needs
        self._to_request = to_request

    def __call__(self, pod: ManagedPod) -> QueuedPod:
        """Translate a pod. Raises RequestError if its class is not listed."""
        request = self._to_request(pod)
        return QueuedPod(
            request=request,
            gang_size=len(request.gang_leaf_counts),
            is_gated=pod.is_gated,
            is_ending=pod.is_deleting,
            node=pod.node,
            nominated=pod.nominated_node,
            is_refused=pod.is_refused,
            placement=to_placement(pod),
            node_wish=self._needs.of(pod),
            may_preempt=pod.may_preempt,
            workload=pod.workload.uid if pod.workload else "",
            rank=member_rank(pod),
            late=pod.late_leaf_counts,
            avoids=self._failures.nodes_to_avoid(pod) if pod.node is None else (),
            # A PodGroup gives the least number of members; there may be more.
            alone=to_single_request(request, pod) if pod.gang.size is None else None,
            first_asked=self._pods.workloads.first_asked(pod),
            user=pod.charged_user,
            group=pod.charged_group,
            class_name=pod.charged_class or "",
            start_by=pod.start_by,
            alternatives=pod.alternatives,
            forms=pod.forms,
            alternative=pod.alternative,
        )
