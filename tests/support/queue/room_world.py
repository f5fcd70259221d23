"""`RoomWorld`: a planner's world in which nodes have zones and CPU, and pods have needs.

The planner uses the real `FittingNodes`. What kube-scheduler counts is counted here from scratch.
"""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, permutations

from extender.cells.model import MemberRequest, Place
from extender.queue.model import Action, EvictPod
from extender.queue.ports import Nodes
from extender.room.cluster_room import ClusterRoom
from extender.room.fitting_nodes import FittingNodes, Need
from policy.pod_resources import CPU, NodePod, PodResources
from policy.submission import GangKey, NodeName, PodUid
from policy.topology import Topology
from tests.support.cells.builders import nodes_of
from tests.support.queue.planner_world import FakePod, PlannerWorld

CPU_PER_NODE = 8
ZONES = ("east", "west")


@dataclass(frozen=True, slots=True)
class ZoneWish:
    """A node selector; None suits every node."""

    zone: str | None

    def suits(self, node: Mapping[str, str]) -> bool:
        return self.zone is None or node["zone"] == self.zone


class RoomWorld(PlannerWorld):
    """Nodes of two zones in turn, with eight CPUs each."""

    def __init__(self, topology: Topology) -> None:
        self.room = ClusterRoom()
        self.fitting_nodes = FittingNodes(self.room)
        self.zones = {
            node: ZONES[index % 2] for index, node in enumerate(sorted(nodes_of(topology)))
        }
        self.others: dict[NodeName, int] = {}
        """CPUs that pods use which ask for no leaf cells."""
        for node, zone in self.zones.items():
            self.fitting_nodes.upsert(node, {"zone": zone}, {CPU: CPU_PER_NODE, "pods": 110})
        super().__init__(topology)

    def lead(self) -> None:
        super().lead()
        for uid in [uid for uid in self.requests if uid not in self.pods]:
            self.room.lose(uid)  # the watch will not tell again
            self.room.unseat(uid)
        self.cells.on_change = self.seat_members
        for uid, pod in self.pods.items():
            self._see(uid, pod)
        self.seat_members()

    @property
    def nodes_for_planner(self) -> Nodes:
        return self.fitting_nodes

    # -- reports to the room

    def _see(self, uid: PodUid, pod: FakePod) -> None:
        self.room.see(uid, NodePod(resources=need_of(pod).resources), node=pod.seen_as.node)

    def deliver(self, uid: PodUid) -> None:
        pod = self.pods.get(uid)
        if pod is None:
            self.room.lose(uid)
        else:
            self._see(uid, pod)
        super().deliver(uid)
        self.seat_members()

    def seat_members(self) -> None:
        """Members count on the nodes of their places, as soon as they have them."""
        for uid in {**self.pods, **dict.fromkeys(self.undelivered)}:
            placement = self.engine.placement(uid)
            if placement is None:
                self.room.unseat(uid)
            else:
                self.room.seat(uid, placement.node, is_endable=True)

    def step(self) -> None:
        self.planner.expire(self.engine.expire(now=self.now))
        self.seat_members()
        super().step()

    def bind(self, uid: PodUid) -> None:
        super().bind(uid)
        self.seat_members()

    # -- users and others

    def need(self, uid: PodUid) -> Need:
        return need_of(self.pods[uid])

    def load(self, node: NodeName, cpus: int) -> None:
        """Pods that are not managed use so many CPUs of a node."""
        self.others[node] = cpus
        self.room.see(PodUid(f"other-{node}"), _using(cpus), node=node)

    def protect(self, gang: GangKey, *, breaks: bool) -> None:
        """A PodDisruptionBudget forbids to end a gang, or not any more."""
        self.engine.observe_budget(gang, breaks=breaks)

    def begin_run(self, gang: GangKey, *, seconds: int) -> None:
        """A gang of which members run begins a minimum run, or it is over."""
        view = self.engine.gang(gang)
        if view is None or not view.bound:
            return
        if self.engine.observe_minimum_run(gang, seconds=seconds) and not seconds:
            self.planner.wake()

    def _do(self, action: Action) -> bool:
        if isinstance(action, EvictPod):
            gang = self.gangs().get(action.preemptor, [])
            assert all(pod.seen_as.may_preempt for pod in gang), "Never preempts nobody"
        return super()._do(action)

    # -- kube-scheduler

    def _has_room(self, node: NodeName, pod: FakePod) -> bool:
        need, priority = need_of(pod), pod.seen_as.request.priority
        if not need.wish.suits({"zone": self.zones[node]}):
            return False
        used = self.others.get(node, 0) + sum(
            cpus_of(other)
            for other in self.pods.values()
            if other is not pod and self.keeps(node, other.seen_as, priority)
        )
        return used + cpus_of(pod) <= CPU_PER_NODE and super()._has_room(node, pod)

    # -- what must hold

    def check(self) -> None:
        """No node has more CPUs in use than it has, and each pod runs where it may."""
        super().check()
        for node in self.zones:
            here = [pod for pod in self.pods.values() if pod.seen_as.node == node]
            assert all(need_of(pod).wish.suits({"zone": self.zones[node]}) for pod in here)

    def fits(self, pods: list[FakePod]) -> bool:
        """Whether members of a gang fit now, by trying all sets of nodes and all assignments."""
        waiting = [pod for pod in pods if not pod.seen_as.is_helper]
        if not waiting:
            return True
        first = waiting[0].seen_as.request
        counts = tuple(size for size in first.gang_leaf_counts if size)
        request = replace(first, gang_leaf_counts=counts)
        for count in range(1, len(self.zones) + 1):
            for nodes in combinations(sorted(self.zones), count):
                if self._fits_on(request, nodes, waiting):
                    return True
        return False

    def _fits_on(
        self, request: MemberRequest, nodes: Collection[NodeName], pods: list[FakePod]
    ) -> bool:
        decision = self.engine.plan(request, candidate_nodes=dict.fromkeys(nodes))
        if not isinstance(decision, Place):
            return False
        places = [(one.node, len(one.leaf_cells)) for one in (decision.placement, *decision.others)]
        if len(places) < len(pods):
            return False
        return any(self._is_possible(pods, chosen) for chosen in permutations(places, len(pods)))

    def _is_possible(self, pods: list[FakePod], places: tuple[tuple[NodeName, int], ...]) -> bool:
        free = {node: CPU_PER_NODE - self._used(node) for node in self.zones}
        for pod, (node, size) in zip(pods, places, strict=True):
            free[node] -= cpus_of(pod)
            is_suitable = need_of(pod).wish.suits({"zone": self.zones[node]})
            if not is_suitable or pod.seen_as.request.leaf_count != size or free[node] < 0:
                return False
        return True

    def _used(self, node: NodeName) -> int:
        there = [
            cpus_of(pod)
            for uid, pod in self.pods.items()
            if pod.seen_as.node == node or self._is_placed_on(uid, node)
        ]
        return self.others.get(node, 0) + sum(there)

    def _is_placed_on(self, uid: PodUid, node: NodeName) -> bool:
        placement = self.engine.placement(uid)
        return (
            self.pods[uid].seen_as.node is None and placement is not None and placement.node == node
        )


def a_need(*, zone: str | None = None, cpus: int = 0) -> Hashable:
    """What a member asks of its node beside leaf cells."""
    return Need(ZoneWish(zone), _using(cpus).resources)


def need_of(pod: FakePod) -> Need:
    need = pod.seen_as.node_wish
    return need if isinstance(need, Need) else Need(ZoneWish(None), PodResources())


def cpus_of(pod: FakePod) -> int:
    return dict(need_of(pod).resources.amounts).get(CPU, 0)


def _using(cpus: int) -> NodePod:
    amounts = ((CPU, cpus),) if cpus else ()
    return NodePod(resources=PodResources(amounts=amounts))
