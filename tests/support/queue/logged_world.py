"""A planner that leads: real gangs, engine and order, whose every decision is in a log in memory.

Gangs are submitted, preempt, run and end by a clock that the world advances; nodes fail, documents
change, and another leader takes over. The log is what `cellgate replay` reads.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any

from extender.cells.model import (
    NO_FACTS,
    NO_LIMITS,
    Decision,
    MemberRequest,
    Part,
    PlacedMember,
    Seat,
    WaitFacts,
)
from extender.cells.views.listings import run_to_end
from extender.cluster.cluster import Cluster
from extender.cluster.journal import DecisionContext, LogJournal, NoJournal
from extender.cluster.queue_log import QueueLog
from extender.queue.forecast.model import RunTime
from extender.queue.gang_planner import GangPlanner
from extender.queue.model import EvictPod, QueuedPod, ReleasePod
from extender.queue.order.gang_order import GangOrder, VcSize
from kube.read.nodes import KubeNode
from policy.parser import DocumentKind
from policy.policy import Policy
from policy.queues.holds import HoldRole
from policy.queues.swaps import SwapRequest
from policy.store import PolicyText, build_policy
from policy.submission import ClassName, GangKey, NodeName, PodUid, VcName
from service.clock import Clock
from state.log.log import DecisionLog
from state.log.records import RowKind
from tests.support.kube.nodes import a_node
from tests.support.queue.timed_world import StatedRunTimes
from tests.support.queue.unlimited_nodes import UnlimitedNodes
from tests.support.twins.log import MemoryDecisions

CLASSES = """apiVersion: cellgate.io/v1
kind: Classes
classes:
- {name: urgent, cellPriority: 9}
- {name: normal, cellPriority: 1}
- {name: spare, cellPriority: -1}
default: normal
"""
_PRIORITIES = {"urgent": 9, "normal": 1, "spare": -1}


class LoggedCells:
    """The cluster as the planner uses it, for pods that may preempt."""

    def __init__(self, cluster: Cluster, bound: Collection[PodUid]) -> None:
        self.cluster = cluster
        self._bound = bound
        for name in (
            "plan", "is_ready", "renew", "placement", "has_place", "is_preempting", "known_sizes",
            "victim_priority", "domain", "holders", "shadow", "moves", "view_seats", "count_kept",
            "kept_cells", "most_leaf_cells", "forget_member",
        ):  # fmt: skip
            setattr(self, name, getattr(cluster, name))
        self.is_foreign = cluster.members.is_foreign
        self.members_of = cluster.members.of_gang

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def apply(
        self,
        decision: Decision,
        *,
        candidate_nodes: Collection[NodeName],
        now: float,
        limits: Mapping[NodeName, int] = NO_LIMITS,
        parts: Sequence[Part] = (),
        kept: Sequence[Seat] = (),
        facts: WaitFacts = NO_FACTS,
    ) -> Decision:
        context = DecisionContext(
            kind=RowKind.PLACEMENT,
            now=now,
            applies_preemption=True,
            limits=limits,
            parts=parts,
            kept=kept,
            facts=facts,
        )
        return self.cluster.apply(decision, candidate_nodes=candidate_nodes, context=context)

    def is_bound(self, member: PodUid) -> bool:
        return member in self._bound


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A gang as it is submitted."""

    name: str
    sizes: tuple[int, ...]
    vc: str = "a"
    class_name: str = "normal"
    user: str = "alice"
    group: str | None = None
    runs: float = 600.0
    """How long it runs."""
    expected: float | None = None
    """How long it is expected to run; None if that is not known."""
    limit: float | None = None
    start_by: float | None = None


class LoggedWorld(UnlimitedNodes):
    """A cluster of racks, its leader, and the log."""

    longest_seconds = 45.0
    planner: GangPlanner

    def __init__(
        self,
        cluster_text: str,
        queues_text: str,
        *,
        nodes: int = 8,
        nodes_per_rack: int = 4,
        store: Any = None,
    ) -> None:
        names = [NodeName(f"node-{index:04}") for index in range(nodes)]
        super().__init__(names)
        self._rack = {name: f"rack-{place // nodes_per_rack}" for place, name in enumerate(names)}
        self._cluster_text = cluster_text
        self.now = 1_000_000.0
        self.store = MemoryDecisions() if store is None else store
        self.log = DecisionLog(self.store)
        self.pods: dict[PodUid, QueuedPod] = {}
        self.running: dict[PodUid, PlacedMember] = {}
        self.run_times = StatedRunTimes(clock=lambda: self.now)
        self._asked: dict[GangKey, Asked] = {}
        self._ends: list[tuple[float, GangKey]] = []
        self.epoch = 0
        self.policy = read_policy(queues_text)
        self.order = GangOrder()
        self.lead()

    # -- leaders and documents

    def lead(self) -> None:
        """Another replica leads from now on: leases are lost, reservations are read again."""
        known = self.planner.reservations.in_force() if self.epoch else []
        self.epoch += 1
        self.cluster = Cluster(lease_seconds=30.0, journal=NoJournal())
        for name in self.nodes:
            self.cluster.observe_node(self._node(name))
        self.cluster.write_to(LogJournal(self.log, epoch=self.epoch, clock=Clock()))
        self.cluster.use_document(self._cluster_text)
        running = list(self.running.values())
        run_to_end(self.cluster.recover_stepwise(running, released=[], now=self.now))
        self.order = GangOrder(self.policy.queues, self.policy.classes)
        cells = LoggedCells(self.cluster, self.running)
        self.planner = GangPlanner(cells, self, self, order=self.order, run_times=self.run_times)
        self.cluster.on_room.append(self.planner.wake)
        self.queue_log = QueueLog(
            self.cluster,
            ranking=self.planner.ranking,
            reservations=self.planner.reservations,
            policy=lambda: self.policy,
        )
        self.planner.ranking.note_time(self.now)
        for pod in self.pods.values():
            self.planner.see(pod)
        self.planner.reservations.restore(known)
        self.work()

    def use_queues(self, text: str) -> None:
        """Another Queues document is in force."""
        self.policy = read_policy(text)
        self.order.configure(self.policy.queues, self.policy.classes)
        run_to_end(self.planner.ranking.reorder())
        self.work()

    def use_cluster(self, text: str) -> None:
        """Another Cluster document is in force."""
        self._cluster_text = text
        self.cluster.use_document(text)
        self.planner.wake()
        self.work()

    def is_open(self, uid: PodUid) -> bool:
        return False

    def _node(self, name: NodeName) -> KubeNode:
        node = a_node(name).of_type("A100").in_rack(self._rack[name])
        return (node if self.nodes[name] else node.unready()).read()

    # -- gangs

    def submit(self, asked: Asked) -> GangKey:
        """Submit a gang."""
        key = GangKey("lab", asked.name)
        self._asked[key] = asked
        self.run_times.of[key] = RunTime(
            median=asked.expected, high=asked.expected, limit=asked.limit, runs=50
        )
        for index, size in enumerate(asked.sizes):
            request = MemberRequest(
                member=PodUid(f"{asked.name}-{index}"),
                gang=key,
                leaf_count=size,
                gang_leaf_counts=asked.sizes,
                vc=VcName(asked.vc),
                priority=_PRIORITIES[asked.class_name],
                ignores_candidates=False,
                created=self.now,
            )
            pod = QueuedPod(
                request=request,
                gang_size=len(asked.sizes),
                is_gated=True,
                may_preempt=True,
                user=asked.user,
                group=asked.group,
                class_name=ClassName(asked.class_name),
                start_by=asked.start_by,
            )
            self.pods[pod.uid] = pod
            self.planner.see(pod)
        return key

    def withdraw(self, key: GangKey) -> None:
        """All pods of a gang end, whether they run or not."""
        asked = self._asked.pop(key, None)
        if asked is None:
            return
        for uid in [uid for uid, pod in self.pods.items() if pod.request.gang == key]:
            del self.pods[uid]
            self.running.pop(uid, None)
            self.cluster.forget_member(uid)
            self.planner.lose(uid)

    def swap(self, gang: GangKey, other: GangKey) -> None:
        """Two gangs that wait exchange their places."""
        request = SwapRequest(other=other, role=HoldRole.OWNER, user="alice", at=self.now)
        self.planner.ranking.swap(gang, request)

    # -- time

    def work(self) -> None:
        """Make steps until the planner has nothing to do."""
        has_more = True
        while has_more:
            self.planner.ranking.note_time(self.now)
            step = self.planner.step(now=self.now)
            if step.to_prepare is not None:
                run_to_end(self.cluster.prepare_stepwise(step.to_prepare))
            self.queue_log.note_actions(step.actions)
            ended: dict[GangKey, None] = {}
            for action in step.actions:
                self.planner.succeed(action, now=self.now)
                if isinstance(action, ReleasePod):
                    self._start(action)
                elif isinstance(action, EvictPod):
                    ended[action.victim] = None
            for gang in ended:
                self.withdraw(gang)
            has_more = step.has_more or bool(step.actions) or step.to_prepare is not None

    def _start(self, action: ReleasePod) -> None:
        pod = self.pods[action.uid]
        seen = replace(pod, is_gated=False, placement=action.placement, node=action.placement.node)
        bound = PlacedMember(request=pod.request, placement=action.placement)
        self.pods[pod.uid], self.running[pod.uid] = seen, bound
        self.cluster.observe_bound(bound)
        self.planner.see(seen)
        gang = pod.request.gang
        if gang not in self.run_times.started:
            self.run_times.started[gang] = self.now
            heappush(self._ends, (self.now + self._asked[gang].runs, gang))

    def advance(self, seconds: float, *, every: float = 30.0) -> None:
        """Let time pass: gangs end on time, and the planner works in between."""
        until = self.now + seconds
        while self.now < until:
            self.now = min(until, self.now + every)
            while self._ends and self._ends[0][0] <= self.now:
                self.withdraw(heappop(self._ends)[1])
            self.work()

    def refresh(self) -> None:
        """Count recent use and the cells of VCs, as the leader does every few seconds."""
        used: dict[str, int] = {}
        for one in self.running.values():
            used[one.request.vc] = used.get(one.request.vc, 0) + one.request.leaf_count
        sizes = {vc: VcSize(promised, used.get(vc, 0)) for vc, promised in self._promised()}
        vcs = self.order.observe_vcs(sizes, leaf_cells=8 * len(self.nodes))
        run_to_end(self.planner.ranking.reorder_vcs(vcs))
        run_to_end(self.planner.ranking.reorder_run_times())
        run_to_end(self.planner.ranking.refresh_shares(now=self.now))
        self.work()

    def _promised(self) -> list[tuple[str, int]]:
        topology = self.cluster.topology
        vcs = topology.vcs if topology is not None else ()
        return [(vc, 8 * len(self.nodes) // max(1, len(vcs))) for vc in vcs]

    def set_node(self, name: NodeName, *, is_healthy: bool) -> None:
        """A node fails, or is back; its pods end."""
        self.nodes[name] = is_healthy
        if not is_healthy:
            lost = {one.request.gang for one in self.running.values() if one.placement.node == name}
            for gang in sorted(lost):
                self.withdraw(gang)
        self.cluster.observe_node(self._node(name))
        self.planner.wake()
        self.work()


def read_policy(queues_text: str) -> Policy:
    """Read the documents by which gangs are ordered."""
    texts = {DocumentKind.CLASSES: CLASSES, DocumentKind.QUEUES: queues_text}
    return build_policy(
        PolicyText(kind=kind, source=f"ConfigMap {kind}", text=text) for kind, text in texts.items()
    )
