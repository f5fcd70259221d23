"""Counts how often kube-scheduler refuses the node that is planned for a pod, and why.

The planner counts the room on nodes as kube-scheduler does, so refusals should be rare: a count
that grows shows what the planner does not know.
"""

from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.metrics import ExtenderMetrics
from kube.read.managed_pod import ManagedPod
from kube.read.refusals import classify
from policy.submission import PodUid


class RefusedNodes:
    """Counts each refusal once, though every change of the pod shows it again."""

    def __init__(self, *, cluster: Cluster, pods: PodSink, metrics: ExtenderMetrics) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._last: dict[PodUid, str] = {}
        pods.on_change.append(self._note)
        pods.on_end.append(self._forget)

    def _note(self, pod: ManagedPod) -> None:
        refusal = pod.refusal
        if refusal is None:
            self._last.pop(pod.uid, None)
        elif self._cluster.has_place(pod.uid) and self._last.get(pod.uid) != refusal:
            self._last[pod.uid] = refusal
            self._metrics.refused_nodes.labels(classify(refusal)).inc()

    def _forget(self, pod: ManagedPod) -> None:
        self._last.pop(pod.uid, None)
