"""The extender's shell without a network: a cluster, its pods, and what they are told."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from extender.cells.model import MemberRequest
from extender.cells.observe.bound_pods import PlacedMember
from extender.cells.views.listings import run_to_end
from extender.cluster.cluster import Cluster
from extender.cluster.document_text import read_cluster_text
from extender.cluster.journal import NoJournal
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import to_bound, to_foreign_use, to_member_request
from extender.metrics import ExtenderMetrics
from extender.outcomes.waiting_pods import WaitingPods
from kube.follow.namespaces import NamespaceSink
from kube.read.nodes import KubeNode
from kube.read.pods import ManagedPod
from policy.classes import NO_CLASSES, Classes
from policy.submission import NodeName
from tests.support.cluster_texts import hived_text


class NoSizes:
    """There are no PodGroups."""

    def size(self, _: ManagedPod) -> int | None:
        return None


class Shell:
    """Two racks of two nodes with eight leaf cells; VC lab is promised all of them."""

    def __init__(
        self, *, lease_seconds: float = 60, classes: Callable[[], Classes] = lambda: NO_CLASSES
    ) -> None:
        self._classes = classes
        self.cluster = Cluster(lease_seconds=lease_seconds, journal=NoJournal())
        for index in range(4):
            self.node(f"node-{index:02}")
        self.cluster.use_document(read_cluster_text(hived_text(lab=4)))
        self.metrics = ExtenderMetrics(CollectorRegistry())
        self.waiting = WaitingPods()
        self.pods = PodSink(
            self.cluster,
            namespaces=NamespaceSink(),
            to_bound=self.to_bound,
            to_foreign_use=to_foreign_use,
        )

    def node(self, name: str, *, is_healthy: bool = True) -> None:
        self.cluster.observe_node(
            KubeNode(
                name=NodeName(name),
                is_healthy=is_healthy,
                leaf_counts={"nvidia.com/gpu": 8},
                usable_count=8,
            )
        )

    def recover(self) -> None:
        """Take in what runs; from now on the engine follows every pod."""
        run_to_end(self.pods.recover(now=0.0))

    def to_request(self, pod: ManagedPod) -> MemberRequest:
        return to_member_request(pod, classes=self._classes(), sizes=NoSizes())

    def to_bound(self, pod: ManagedPod) -> PlacedMember:
        return to_bound(pod, classes=self._classes(), sizes=NoSizes())

    def drift(self, kind: str) -> float:
        return float(self.metrics.drift.labels(kind)._value.get())
