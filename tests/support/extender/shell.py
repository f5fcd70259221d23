"""The extender's shell without a network: a cluster, its pods, and what they are told."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from extender.cells.model import MemberRequest, PlacedMember
from extender.cells.views.listings import run_to_end
from extender.cluster.cluster import Cluster
from extender.cluster.journal import NoJournal
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import to_bound, to_member_request
from extender.metrics import ExtenderMetrics
from extender.outcomes.outcomes import Outcomes
from extender.outcomes.pod_events import PodEvents
from extender.outcomes.reclaims import Reclaims, SuspendWorkloads
from extender.upkeep.reconciler import Reconciler
from kube.api.events import Event
from kube.follow.namespaces import NamespaceSink
from kube.read.managed_pod import ManagedPod
from policy.classes import NO_CLASSES, Classes
from policy.submission import PodUid
from service.clock import Clock
from tests.support.extender.group_sizes import GroupSizes
from tests.support.kube.nodes import a_node
from tests.support.policy.cluster_texts import hived_text


class Events(list[Event]):
    """Keeps the Events that are to be written."""

    write = list.append

    def said(self, reason: str) -> list[tuple[str, str]]:
        """Pod and message of the Events with this reason."""
        return [(event.name, event.message) for event in self if event.reason == reason]


class Shell:
    """Two racks of two nodes with eight leaf cells; VC lab is promised all of them."""

    def __init__(
        self, *, lease_seconds: float = 60, classes: Callable[[], Classes] = lambda: NO_CLASSES
    ) -> None:
        self._classes = classes
        self.cluster = Cluster(lease_seconds=lease_seconds, journal=NoJournal())
        for index in range(4):
            self.node(f"node-{index:02}")
        self.cluster.use_document(hived_text(lab=4))
        self.metrics = ExtenderMetrics(CollectorRegistry())
        self.pods = PodSink(
            self.cluster,
            namespaces=NamespaceSink(),
            to_bound=self.to_bound,
        )
        self.events = Events()
        self.clock = Clock(monotonic=lambda: self.now)
        self.now = 0.0
        self.outcomes = Outcomes(
            cluster=self.cluster,
            pods=self.pods,
            events=PodEvents(self.events),  # type: ignore[arg-type] # all that it uses
            metrics=self.metrics,
            clock=self.clock,
        )
        self.waiting = self.outcomes.waiting

    def node(self, name: str, *, is_healthy: bool = True) -> None:
        node = a_node(name) if is_healthy else a_node(name).unready()
        self.cluster.observe_node(node.read())

    def pod(self, name: str) -> ManagedPod:
        """A pod that exists."""
        pod = self.pods.get(PodUid(f"uid-of-{name}"))
        assert pod is not None
        return pod

    def recover(self) -> None:
        """Take in what runs; from now on the engine follows every pod."""
        run_to_end(self.pods.recover(now=0.0))

    def to_request(self, pod: ManagedPod) -> MemberRequest:
        return to_member_request(pod, classes=self._classes(), sizes=GroupSizes())

    def to_bound(self, pod: ManagedPod) -> PlacedMember:
        return to_bound(pod, classes=self._classes(), sizes=GroupSizes())

    def reclaims(self, suspender: SuspendWorkloads | None = None) -> Reclaims:
        """By default, no workload is suspended."""
        return Reclaims(
            suspender,
            pods=self.pods,
            has_place=self.cluster.has_place,
            outcomes=self.outcomes,
            metrics=self.metrics,
            clock=self.clock,
        )

    def reconciler(self) -> Reconciler:
        return Reconciler(
            cluster=self.cluster,
            pods=self.pods,
            waiting=self.waiting,
            to_bound=self.to_bound,
            metrics=self.metrics,
        )

    def drift(self, kind: str) -> float:
        return float(self.metrics.drift.labels(kind)._value.get())
