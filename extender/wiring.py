"""Builds the state of an extender; `verbs_wiring` builds what answers.

Every part gets the others that it needs when it is built; there are no globals.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry

from extender.cluster.cluster import Cluster
from extender.cluster.journal import LogJournal, NoJournal
from extender.feeds.cluster_file import ClusterFile
from extender.feeds.pod_feed import PodSink
from extender.feeds.pod_needs import PodNeeds
from extender.feeds.requests import to_bound, to_member_request
from extender.feeds.room_feed import follow_members
from extender.feeds.topology import TopologyFollower
from extender.forecasts.forecast_loop import ForecastLoop
from extender.history.run_recorder import RunRecorder
from extender.history.seen_pods import seen_by
from extender.inspection.census import Census
from extender.inspection.limit_routes import LimitRoutes
from extender.inspection.snapshots import Snapshots
from extender.leader_role import LeaderRole
from extender.metrics import ExtenderMetrics
from extender.outcomes.outcomes import Outcomes
from extender.outcomes.pod_events import PodEvents
from extender.outcomes.reclaims import Reclaims
from extender.outcomes.refused_nodes import RefusedNodes
from extender.planning.class_raiser import ClassRaiser
from extender.planning.pod_ranks import PodRanks
from extender.planning.quota_queue import QuotaQueue
from extender.planning.run_protection import RunProtection
from extender.queue.order.gang_order import GangOrder
from extender.room.cluster_room import ClusterRoom
from extender.room.fitting_nodes import FittingNodes
from extender.settings import LEADERSHIP, ExtenderSettings
from extender.upkeep.budget_sync import BudgetSync
from extender.upkeep.ledger_sync import LedgerSync
from extender.upkeep.reclaimed_ages import ReclaimedAges
from extender.upkeep.reconciler import Reconciler
from extender.upkeep.reranker import Reranker
from extender.upkeep.waiting_ages import WaitingAges
from kube.api.client import KubeClient
from kube.api.events import EventWriter
from kube.api.pod_writer import PodMarker
from kube.api.suspender import WorkloadSuspender
from kube.follow.disruption_budgets import DisruptionBudgetSink
from kube.follow.namespaces import NamespaceSink
from kube.follow.pod_groups import PodGroupFollower
from kube.follow.policies import PolicySink
from kube.follow.volumes import Volumes
from policy.quarantine import QuarantineRule
from service.clock import Clock
from state.history.runs import RunHistory
from state.ledger.ledger import LeaderTerm, Ledger
from state.log.log import DecisionLog


class ExtenderState:
    """The state of one extender, and the parts that keep it up to date."""

    def __init__(
        self,
        *,
        client: KubeClient,
        clock: Clock,
        leading: LeaderRole,
        log: DecisionLog,
        ledger: Ledger | None,
        registry: CollectorRegistry,
        settings: ExtenderSettings,
        history: RunHistory | None = None,
    ) -> None:
        self.log = log
        self.history = history
        self.settings = settings
        self.clock = clock
        self.metrics = ExtenderMetrics(registry)
        self.events = EventWriter(client, clock)
        self.leading = leading
        # A standby decides nothing, so it records nothing.
        self.cluster = Cluster(lease_seconds=settings.lease_seconds, journal=NoJournal())
        self.snapshots = Snapshots(self.cluster)
        self.census = Census(self.cluster)
        self.groups = PodGroupFollower(client, clock)
        self.groups.on_change.append(self.cluster.touch)
        self.namespaces = NamespaceSink()
        self.room = ClusterRoom()
        self.fitting_nodes = FittingNodes(self.room)
        self.volumes = Volumes()
        self.pod_needs = PodNeeds(self.fitting_nodes, self.volumes)
        follow_members(self.cluster.members, self.room)
        self.policies = PolicySink(self.events)
        self.order = GangOrder()
        self.turn = asyncio.Lock()
        """Held while the cluster is changed in steps."""
        self.file = ClusterFile(file, self.policies) if (file := settings.cluster_file) else None
        self.topology = TopologyFollower(self.cluster, self.policies, turn=self.turn)
        to_bound_now = self.translating(to_bound)
        self.pods = PodSink(self.cluster, namespaces=self.namespaces, to_bound=to_bound_now)
        self.run_protection = self._build_run_protection()
        self.outcomes = self._build_outcomes()
        self.runs = self._build_runs(registry)
        self.forecasts = self._build_forecasts(registry)
        self.budgets = DisruptionBudgetSink()
        self.budget_sync = BudgetSync(budgets=self.budgets, cluster=self.cluster, pods=self.pods)
        RefusedNodes(cluster=self.cluster, pods=self.pods, metrics=self.metrics)
        self.reclaims = self._build_reclaims(client, is_on=settings.reclaims_gently)
        self.reconciler = self._build_reconciler()
        self.reranker = self._build_reranker()
        self.ledger_sync = self._build_ledger_sync(ledger) if ledger is not None else None
        self.limits = LimitRoutes(ledger, lambda: self.policies.policy)
        self.reclaimed_ages = ReclaimedAges(ledger, pods=self.pods, term=self.term)
        WaitingAges(self.pods, note_retried=self.reclaimed_ages.note, clock=clock)
        self.pod_ranks = self._build_pod_ranks()
        self.quota_queue = self._build_quota_queue(ledger) if ledger is not None else None
        self.class_raiser = self._build_class_raiser(ledger, client) if ledger is not None else None

    def _build_run_protection(self) -> RunProtection:
        protection = RunProtection(
            cluster=self.cluster,
            pods=self.pods,
            rules=lambda: self.policies.policy.queues.preemption,
            clock=self.clock,
        )
        self.policies.on_change.append(protection.note_rules)
        return protection

    def _build_outcomes(self) -> Outcomes:
        outcomes = Outcomes(
            cluster=self.cluster,
            pods=self.pods,
            events=PodEvents(self.events),
            metrics=self.metrics,
            clock=self.clock,
        )
        self.topology.on_downgraded.append(outcomes.gang_downgraded)
        self.topology.on_promoted.append(outcomes.gang_promoted)
        return outcomes

    def _build_runs(self, registry: CollectorRegistry) -> RunRecorder:
        return RunRecorder(
            cluster=self.cluster,
            pods=self.pods,
            outcomes=self.outcomes,
            to_seen=seen_by(self.cluster, self.groups),
            history=self.history,
            epoch=lambda: self.leading.epoch,
            clock=self.clock,
            registry=registry,
        )

    def _build_reconciler(self) -> Reconciler:
        return Reconciler(
            cluster=self.cluster,
            pods=self.pods,
            waiting=self.outcomes.waiting,
            to_bound=self.translating(to_bound),
            metrics=self.metrics,
        )

    def _build_forecasts(self, registry: CollectorRegistry) -> ForecastLoop:
        return ForecastLoop(
            self.runs,
            self.history,
            cluster=self.cluster,
            policy=lambda: self.policies.policy,
            term=self.term,
            clock=self.clock,
            registry=registry,
        )

    def _build_reranker(self) -> Reranker:
        return Reranker(
            cluster=self.cluster,
            pods=self.pods,
            policies=self.policies,
            to_request=self.translating(to_member_request),
            to_bound=self.translating(to_bound),
            turn=self.turn,
        )

    def _build_reclaims(self, client: KubeClient, *, is_on: bool) -> Reclaims:
        suspender = WorkloadSuspender(
            client, check_leading=self.leading.check, monotonic=self.clock.monotonic
        )
        return Reclaims(
            suspender if is_on else None,
            pods=self.pods,
            has_place=self.cluster.has_place,
            outcomes=self.outcomes,
            metrics=self.metrics,
            clock=self.clock,
        )

    def _build_ledger_sync(self, ledger: Ledger) -> LedgerSync:
        return LedgerSync(
            ledger=ledger,
            pods=self.pods,
            sizes=self.groups,
            policy=lambda: self.policies.policy,
            has_leases=lambda gang: bool((view := self.cluster.gang(gang)) and view.held),
            term=self.term,
            metrics=self.metrics,
            clock=self.clock,
        )

    def _build_pod_ranks(self) -> PodRanks:
        return PodRanks(
            self.order,
            pods=self.pods,
            run_times=self.forecasts.run_times,
            to_request=self.translating(to_member_request),
            clock=self.clock,
        )

    def _build_quota_queue(self, ledger: Ledger) -> QuotaQueue:
        queue = QuotaQueue(
            ledger=ledger,
            pods=self.pods,
            sizes=self.groups,
            policies=self.policies,
            term=self.term,
            rank_of=lambda pods: self.pod_ranks.standing(pods).key,
        )
        if self.ledger_sync is not None:
            self.ledger_sync.on_freed.append(queue.note_freed)
        queue.on_charged.append(self.runs.note_charged)
        return queue

    def _build_class_raiser(self, ledger: Ledger, client: KubeClient) -> ClassRaiser:
        raiser = ClassRaiser(
            ledger=ledger,
            pods=self.pods,
            sizes=self.groups,
            policies=self.policies,
            outcomes=self.outcomes,
            marker=PodMarker(client, check_leading=self.leading.check),
            term=self.term,
            clock=self.clock,
        )
        if self.ledger_sync is not None:
            self.ledger_sync.on_freed.append(raiser.note_freed)
        return raiser

    def term(self) -> LeaderTerm:
        """Return the leadership term under which this replica writes."""
        return LeaderTerm(leadership=LEADERSHIP, epoch=self.leading.epoch)

    def begin_term(self) -> None:
        """Record every decision from now on, under the epoch of this leadership term."""
        self.cluster.write_to(LogJournal(self.log, epoch=self.leading.epoch, clock=self.clock))

    def translating(self, translate: Callable[..., Any]) -> Callable[[Any], Any]:
        """Make a translation of pods use the classes and PodGroups known when it is called."""
        return lambda pod: translate(pod, classes=self.policies.policy.classes, sizes=self.groups)

    def quarantine_rule(self) -> QuarantineRule | None:
        """Return when nodes are quarantined, by the Cluster document in force."""
        document = self.policies.policy.cluster
        entry = document.quarantine if document is not None else None
        return entry.build() if entry is not None else None

    def count_problems(self) -> int:
        """Count the problems of all documents, and promises to VCs that cannot be kept."""
        return len([*self.policies.problems, *self.topology.problems, *self.cluster.problems])
