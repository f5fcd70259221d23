"""What an extender is made of: what it knows, what it answers with, what it looks after."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from extender.cluster.cluster import Cluster
from extender.cluster.journal import LogJournal, NoJournal
from extender.feeds.cluster_file import ClusterFile
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import to_bound, to_foreign_use, to_member_request
from extender.feeds.topology import TopologyKeeper
from extender.inspection.census import Census
from extender.inspection.explainer import Explainer
from extender.inspection.snapshots import Snapshots
from extender.metrics import ExtenderMetrics
from extender.outcomes.announcer import Announcer
from extender.outcomes.eviction import Ending
from extender.outcomes.outcomes import Outcomes
from extender.outcomes.victims import Victims
from extender.outcomes.waiting_pods import WaitingPods
from extender.planning.actions import Hands
from extender.planning.cluster_cells import ClusterCells
from extender.planning.pending_writes import Writing
from extender.planning.planning_loop import Planner
from extender.planning.quota_queue import QuotaQueue
from extender.term import Leading
from extender.upkeep.half_bound_gangs import HalfBoundGangs
from extender.upkeep.ledger_sync import Bookkeeper
from extender.upkeep.reconciler import Reconciler
from extender.upkeep.reranker import Reranker
from extender.upkeep.waker import Waker
from extender.verbs.bind import Binding
from extender.verbs.filter import Filter
from extender.verbs.preempt import Preemption
from extender.verbs.questions import Questions
from kube.api.binder import Binder
from kube.api.client import KubeClient
from kube.api.events import EventWriter
from kube.api.pod_ender import PodEnder
from kube.api.pod_waker import PodWaker
from kube.follow.gang_sizes import GangSizes
from kube.follow.namespaces import NamespaceSink
from kube.follow.policies import PolicySink
from kube.read.node_choice import NodeChoice
from policy.submission import PodUid
from service.clock import Clock
from state.ledger.ledger import Ledger
from state.log.log import DecisionLog


class State:
    """What one extender knows, and who keeps it up to date."""

    def __init__(
        self,
        *,
        client: KubeClient,
        leading: Leading,
        log: DecisionLog,
        ledger: Ledger | None,
        registry: CollectorRegistry,
        cluster_file: Path | None,
        lease_seconds: float,
    ) -> None:
        self.log = log
        self.clock = Clock()
        self.metrics = ExtenderMetrics(registry)
        self.events = EventWriter(client)
        self.announcer = Announcer(self.events)
        self.leading = leading
        # Who does not lead decides nothing, and writes nothing down.
        self.cluster = Cluster(lease_seconds=lease_seconds, journal=NoJournal())
        self.snapshots = Snapshots(self.cluster)
        self.census = Census(self.cluster)
        self.waiting = WaitingPods()
        self.groups = GangSizes(client)
        self.groups.on_change.append(self.cluster.touch)
        self.namespaces = NamespaceSink()
        self.node_choice = NodeChoice()
        self.policies = PolicySink(self.events)
        self.file = ClusterFile(cluster_file, self.policies) if cluster_file else None
        self.keeper = TopologyKeeper(self.cluster, self.policies)
        to_bound_now = self.translating(to_bound)
        self.pods = PodSink(
            self.cluster,
            namespaces=self.namespaces,
            to_bound=to_bound_now,
            to_foreign_use=to_foreign_use,
        )
        self.reconciler = Reconciler(
            cluster=self.cluster,
            pods=self.pods,
            waiting=self.waiting,
            to_bound=to_bound_now,
            metrics=self.metrics,
        )
        self.reranker = Reranker(
            cluster=self.cluster,
            pods=self.pods,
            policies=self.policies,
            to_request=self.translating(to_member_request),
            to_bound=to_bound_now,
        )
        self.bookkeeper = self._keep_books(ledger) if ledger is not None else None
        self.quota_queue = self._queue_for_quota(ledger) if ledger is not None else None

    def _keep_books(self, ledger: Ledger) -> Bookkeeper:
        return Bookkeeper(
            ledger=ledger,
            pods=self.pods,
            sizes=self.groups,
            classes=lambda: self.policies.policy.classes,
            epoch=lambda: self.leading.epoch,
            metrics=self.metrics,
        )

    def _queue_for_quota(self, ledger: Ledger) -> QuotaQueue:
        return QuotaQueue(
            ledger=ledger,
            pods=self.pods,
            sizes=self.groups,
            policies=self.policies,
            epoch=lambda: self.leading.epoch,
        )

    def begin_term(self) -> None:
        """We lead: what is decided from now on is written down, under our epoch."""
        self.cluster.write_to(LogJournal(self.log, epoch=self.leading.epoch, clock=self.clock))

    def translating(self, translate: Callable[..., Any]) -> Callable[[Any], Any]:
        """Translate pods by the classes and PodGroups that are known at that moment."""
        return lambda pod: translate(pod, classes=self.policies.policy.classes, sizes=self.groups)

    def count_problems(self) -> int:
        """How much is wrong with the documents that exist."""
        return len([*self.policies.problems, *self.keeper.problems, *self.cluster.problems])


class Verbs:
    """What kube-scheduler and people are answered with."""

    def __init__(self, state: State, client: KubeClient) -> None:
        to_request = state.translating(to_member_request)
        self.questions = Questions(
            cluster=state.cluster,
            pods=state.pods,
            to_request=to_request,
            metrics=state.metrics,
            clock=state.clock,
        )
        writing = Writing()
        self.binding = Binding(
            leading=state.leading,
            cluster=state.cluster,
            pods=state.pods,
            binder=Binder(client, check_leading=state.leading.check),
            writing=writing,
            metrics=state.metrics,
            clock=state.clock,
        )
        ending = _build_ending(state, client)
        self.victims = _build_victims(state, ending, being_bound=self.binding.under_way)
        cells = ClusterCells(state.cluster, state.pods, being_bound=self.binding.under_way)
        hands = Hands(client, leading=state.leading, writing=writing, ending=ending)
        self.planner = _build_planner(state, cells=cells, hands=hands)
        outcomes = Outcomes(
            cluster=state.cluster,
            pods=state.pods,
            waiting=state.waiting,
            announcer=state.announcer,
            clock=state.clock,
        )
        self.filter = Filter(
            planner=self.planner,
            questions=self.questions,
            cluster=state.cluster,
            outcomes=outcomes,
            metrics=state.metrics,
        )
        self.preemption = Preemption(
            plans_for=self.planner.plans_for,
            questions=self.questions,
            pods=state.pods,
            waiting=state.waiting,
            outcomes=outcomes,
            victims=self.victims,
            metrics=state.metrics,
        )
        self.explainer = Explainer(
            cluster=state.cluster,
            pods=state.pods,
            waiting=state.waiting,
            policies=state.policies,
            to_request=to_request,
            why_queued=self.planner.why_queued,
            log=state.log,
        )


class Upkeep:
    """What is looked after while nobody asks, beside what keeps the state up to date."""

    def __init__(self, state: State, verbs: Verbs, client: KubeClient) -> None:
        to_request = state.translating(to_member_request)
        self.waker = Waker(
            cluster=state.cluster,
            pods=state.pods,
            waiting=state.waiting,
            to_request=to_request,
            waker=PodWaker(client),
            metrics=state.metrics,
            clock=state.clock,
        )
        self.halves = HalfBoundGangs(
            cluster=state.cluster,
            pods=state.pods,
            to_request=to_request,
            release=verbs.victims.release,
            clock=state.clock,
        )


def _build_ending(state: State, client: KubeClient) -> Ending:
    return Ending(
        PodEnder(client, check_leading=state.leading.check),
        announcer=state.announcer,
        metrics=state.metrics,
    )


def _build_victims(state: State, ending: Ending, *, being_bound: Collection[PodUid]) -> Victims:
    return Victims(cluster=state.cluster, pods=state.pods, ending=ending, being_bound=being_bound)


def _build_planner(state: State, *, cells: ClusterCells, hands: Hands) -> Planner:
    planner = Planner(
        cells=cells,
        pods=state.pods,
        nodes=state.node_choice,
        to_request=state.translating(to_member_request),
        hands=hands,
        announcer=state.announcer,
        metrics=state.metrics,
        clock=state.clock,
    )
    state.reranker.on_change.append(planner.rerank)
    planner.follow_groups(state.groups.is_awaited)
    state.groups.on_change.append(planner.look_for_groups)
    if state.quota_queue is not None:
        planner.follow_quota(state.quota_queue)
    return planner
