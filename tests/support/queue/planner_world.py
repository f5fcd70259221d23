"""A cluster in miniature for the planner: pods, a watch that dawdles, a kube-scheduler, a clock.

What the planner sees is what the watch delivered, late and repeated; what it asks for is done late,
or not, or done and reported as failed. What is true is in `pods`.
"""

from dataclasses import dataclass, replace

from extender.cells.engine import Engine
from extender.cells.freed_cells import freed_by
from extender.cells.model import MemberRequest, PlacedMember
from extender.cells.views.listings import run_to_end
from extender.queue.gang_planner import GangPlanner
from extender.queue.model import (
    Action,
    EvictPod,
    NominatePod,
    Notice,
    QueuedPod,
    ReleaseHelper,
    ReleasePod,
)
from extender.queue.ports import Nodes
from policy.placement import Placement
from policy.queues.alternatives import Alternative, GangTerms, all_terms, read_used
from policy.submission import GangKey, NodeName, PodUid
from policy.topology import Topology
from tests.support.cells.builders import a_node_cell, nodes_of
from tests.support.cells.engine_calls import check, observe_bound, recover
from tests.support.queue.engine_cells import EngineCells
from tests.support.queue.unlimited_nodes import UnlimitedNodes

LEASE_SECONDS = 20.0
LEAVES_PER_NODE = 4


@dataclass
class FakePod:
    """A pod as the API server has it."""

    seen_as: QueuedPod
    is_known: bool = False
    """The watch told the planner of it."""

    @property
    def uid(self) -> PodUid:
        return self.seen_as.uid


class PlannerWorld(UnlimitedNodes):
    """Cluster, engine and planner, with everything that can go wrong between them."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        super().__init__(nodes_of(topology))
        self.now = 0.0
        self.pods: dict[PodUid, FakePod] = {}
        self.undelivered: dict[PodUid, None] = {}
        self.actions: list[Action] = []
        self.being_bound: dict[PodUid, Placement] = {}
        self.finished: dict[GangKey, dict[int, int]] = {}
        self.requests: dict[PodUid, MemberRequest] = {}
        """Of all pods that there ever were."""
        self.held: dict[PodUid, Placement] = {}
        """Pods that kube-scheduler asks to bind, and that have no answer yet."""
        self.lead()

    @property
    def nodes_for_planner(self) -> Nodes:
        return self

    def _may_preempt(self, uid: PodUid) -> bool:
        pod = self.pods.get(uid)
        return pod is None or pod.seen_as.may_preempt

    # -- bindings

    longest_seconds = 45.0

    def is_open(self, uid: PodUid) -> bool:
        return uid in self.held

    # -- leading

    def lead(self) -> None:
        """A new leader starts from what the API server has."""
        self.engine = Engine(lease_seconds=LEASE_SECONDS, topology=self.topology)
        self.cells = EngineCells(self.engine, self.being_bound, may_preempt=self._may_preempt)
        self.planner = GangPlanner(self.cells, self.nodes_for_planner, self)
        self.cells.on_leave = self._tell_freed
        self.actions.clear()
        self.being_bound.clear()
        self.held.clear()
        for node, is_healthy in self.nodes.items():
            self.engine.observe_node(a_node_cell(node, is_healthy=is_healthy))
        self.undelivered.clear()
        seen = [pod.seen_as for pod in self.pods.values()]
        seen = [one for one in seen if not one.is_helper]
        running = [_bound(one) for one in seen if one.node is not None]
        released = [_bound(one) for one in seen if one.node is None and one.placement is not None]
        recover(self.engine, running, released=released, now=self.now)
        for pod in self.pods.values():
            pod.is_known = True
            self.planner.see(pod.seen_as)

    def step(self) -> None:
        """Let the planner think."""
        for gang in {self.pods[uid].seen_as.request.gang for uid in self.being_bound}:
            self.engine.renew(gang, now=self.now)
        self.planner.expire(self.engine.expire(now=self.now))
        self.think()
        self._answer()

    def think(self) -> dict[GangKey, Notice | None]:
        """Make a step of the planner, and those that it had to prepare; return the notices."""
        notices: dict[GangKey, Notice | None] = {}
        is_prepared = True
        while is_prepared:
            step = self.planner.step(now=self.now)
            self.actions += step.actions
            notices |= step.notices
            is_prepared = step.to_prepare is not None
            if step.to_prepare is not None:
                run_to_end(self.engine.prepare_stepwise(step.to_prepare))
        return notices

    # -- watching

    def change(self, pod: FakePod, **changes: object) -> None:
        """The API server stores a change; the watch will tell."""
        pod.seen_as = replace(pod.seen_as, **changes)  # type: ignore[arg-type]
        self.undelivered[pod.uid] = None

    def deliver(self, uid: PodUid) -> None:
        """The watch tells the latest of one pod."""
        self.undelivered.pop(uid, None)
        pod = self.pods.get(uid)
        if pod is None:
            self._tell_freed(uid)
            self.engine.forget_member(uid)
            self.planner.lose(uid)
        else:
            pod.is_known = True
            self._pass_on(pod.seen_as)

    def _pass_on(self, seen: QueuedPod) -> None:
        if seen.node is not None and not seen.is_helper:
            self._observe_bound(seen)
        self.planner.see(seen)

    def _observe_bound(self, seen: QueuedPod) -> None:
        bound = _bound(seen)
        observe_bound(
            self.engine,
            bound.request,
            node=bound.placement.node,
            leaf_cells=bound.placement.leaf_cells,
            placement=bound.placement,
        )

    def _tell_freed(self, uid: PodUid) -> None:
        gang = self.planner._seen.find_of(uid)
        request = self.requests[uid] if gang is None else gang.pods[uid].request
        self.planner.wake(freed_by(request, self.engine.placement(uid), self.topology))

    def set_health(self, node: NodeName, *, is_healthy: bool) -> None:
        self.nodes[node] = is_healthy
        self.engine.observe_node(a_node_cell(node, is_healthy=is_healthy))
        if not is_healthy:
            self.planner.lose_node(node)
        self.planner.wake()

    # -- users

    def finish(self, gang: GangKey, count: int, *, leaf_count: int = 1) -> None:
        """So many members with so many leaf cells have succeeded by now."""
        self.finished[gang] = {leaf_count: count} if count else {}
        self.planner.note_finished(gang, "job", self.finished[gang])

    def create(
        self,
        request: MemberRequest,
        *,
        size: int,
        alternatives: tuple[Alternative, ...] = (),
        **fields: object,
    ) -> None:
        asked = GangTerms(vc=request.vc, leaf_type=request.leaf_type, gang_min=request.gang_min)
        pod = FakePod(
            QueuedPod(
                request=replace(request, created=self.now),
                gang_size=size,
                is_gated=True,
                alternatives=alternatives,
                forms=all_terms(asked, alternatives) if alternatives else (),
                **fields,  # type: ignore[arg-type]
            )
        )
        self.pods[pod.uid] = pod
        self.requests[pod.uid] = pod.seen_as.request
        self.undelivered[pod.uid] = None

    def delete(self, uid: PodUid) -> None:
        """A pod ended, or its owner deleted it."""
        del self.pods[uid]
        self.being_bound.pop(uid, None)
        self.hang_up(uid)
        self.undelivered[uid] = None

    # -- acting

    def perform(self, index: int, *, is_done: bool, is_told_done: bool) -> None:
        """Do one of the actions asked for, or fail, or fail to hear that it was done."""
        action = self.actions.pop(index)
        if not self.planner.is_wanted(action):
            is_done = is_told_done = False
        if is_done:
            is_told_done = self._do(action) and is_told_done
        if is_told_done:
            self.planner.succeed(action, now=self.now)
        else:
            self.planner.fail(action, now=self.now)

    def tear(self, index: int) -> None:
        """Nominate the node of a pod that is to be released, and get no further."""
        action = self.actions[index]
        pod = self.pods.get(action.uid)
        if isinstance(action, ReleasePod) and pod is not None and pod.seen_as.node is None:
            self.change(pod, nominated=action.placement.node)
        self.perform(index, is_done=False, is_told_done=False)

    def _do(self, action: Action) -> bool:
        pod = self.pods.get(action.uid)
        if pod is None or (pod.seen_as.node is not None and not isinstance(action, EvictPod)):
            return False
        match action:
            case ReleasePod(placement=placement, alternative=alternative):
                pod.seen_as = pod.seen_as.in_form(read_used(alternative))
                stated = alternative or pod.seen_as.alternative
                self.change(
                    pod,
                    is_gated=False,
                    placement=placement,
                    nominated=placement.node,
                    alternative=stated,
                )
            case ReleaseHelper():
                self.change(pod, is_gated=False)
            case NominatePod(node=node):
                self.change(pod, nominated=node)
            case EvictPod():
                assert pod.seen_as.node is not None, "who does not run only loses its place"
                self.delete(action.uid)
        return True

    # -- kube-scheduler

    def schedule(self, uid: PodUid) -> None:
        """Try one released pod: filter answers from the lease, bind asks the API server."""
        pod = self.pods[uid]
        placement = self._helper_place(pod) if pod.seen_as.is_helper else self.engine.placement(uid)
        if pod.seen_as.is_gated or pod.seen_as.node is not None or placement is None:
            return
        if uid in self.held or uid in self.being_bound:
            return
        if pod.seen_as.is_helper or self._has_room(placement.node, pod):
            self.held[uid] = placement
            self.planner.arrive(uid, now=self.now)
            self._answer()
            return
        self.change(pod, nominated=None)
        if any(self._has_room(node, pod) for node in self.nodes):
            self.planner.refuse_node(uid, now=self.now)  # else the extender is not even asked

    def _helper_place(self, pod: FakePod) -> Placement | None:
        """Where kube-scheduler puts a member without leaf cells, if the extender passes it."""
        if pod.seen_as.is_gated or pod.seen_as.node is not None:
            return None
        may_start = self.planner.may_start(pod.uid)
        return Placement(node=NodeName("any"), leaf_cells=()) if may_start else None

    def hang_up(self, uid: PodUid) -> None:
        """kube-scheduler does not wait any longer for the answer about a pod."""
        self.held.pop(uid, None)

    def _answer(self) -> None:
        """Bind the pods that may be bound; the others are tried again."""
        bound: dict[GangKey, None] = {}
        for uid, verdict in self.planner.held.take_verdicts().items():
            placement = self.held.pop(uid, None)
            if placement is None or verdict.given_up is not None:
                continue
            is_helper = self.pods[uid].seen_as.is_helper
            has_place = is_helper or self.engine.placement(uid) == placement
            assert has_place, "no pod is bound without its place"
            self.being_bound[uid] = placement
            if verdict.gang is not None:
                bound[verdict.gang] = None
        for key in bound:
            self._check_start(key)

    def _check_start(self, key: GangKey) -> None:
        """A gang starts with all its members, or as many as are enough."""
        pods = [pod.seen_as for pod in self.gangs()[key]]
        first = min(pods, key=lambda pod: (pod.created, pod.uid))
        runs = any(pod.node is not None for pod in pods)
        count = sum(pod.uid in self.being_bound for pod in pods)
        finished = self.finished.get(key, {})
        left = first.gang_size - sum(finished.values())
        late = len(first.late)
        if first.request.leaf_count not in first.late:
            late -= sum(finished.get(leaf_count, 0) for leaf_count in set(first.late))
        left -= late if left > late else 0
        least = min(first.request.gang_min or left, left)
        assert runs or count >= least, f"{count} of {least} members of {key} are bound"

    def _has_room(self, node: NodeName, pod: FakePod) -> bool:
        """By what kube-scheduler counts: who runs there, and who is nominated and no less."""
        asks = pod.seen_as.request
        used = sum(
            other.seen_as.request.leaf_count
            for other in self.pods.values()
            if other is not pod and self.keeps(node, other.seen_as, asks.priority)
        )
        return self.nodes[node] and used + asks.leaf_count <= LEAVES_PER_NODE

    @staticmethod
    def keeps(node: NodeName, pod: QueuedPod, priority: int) -> bool:
        """Whether a pod has its room on a node for kube-scheduler, in the eyes of a priority."""
        if pod.node is not None:
            return pod.node == node
        return pod.nominated == node and pod.request.priority >= priority

    def bind(self, uid: PodUid) -> None:
        """The API server writes node and placement of a pod that is being bound."""
        placement, pod = self.being_bound.pop(uid), self.pods[uid]
        if pod.seen_as.is_helper:
            self.change(pod, node=placement.node)
            return
        self.change(pod, node=placement.node, placement=placement)
        # It was we who bound it: the engine knows at once, before any watch can tell.
        self._observe_bound(pod.seen_as)

    def bind_all(self) -> None:
        for uid in sorted(self.pods):
            self.schedule(uid)
        for uid in sorted(self.being_bound):
            self.bind(uid)

    # -- what must hold

    def check(self) -> None:
        """No leaf cell has two bound pods, and the engine agrees with itself."""
        check(self.engine)
        users: dict[tuple[NodeName, int], PodUid] = {}
        for pod in self.pods.values():
            if pod.seen_as.node is None or pod.seen_as.is_helper:
                continue
            assert pod.seen_as.placement is not None
            for leaf in pod.seen_as.placement.leaf_cells:
                other = users.setdefault((pod.seen_as.node, leaf), pod.uid)
                assert other == pod.uid, f"{other} and {pod.uid} share a leaf cell"

    def gangs(self) -> dict[GangKey, list[FakePod]]:
        found: dict[GangKey, list[FakePod]] = {}
        for _, pod in sorted(self.pods.items()):
            found.setdefault(pod.seen_as.request.gang, []).append(pod)
        return found

    def settle(self) -> None:
        """Let everything work, and time pass, until nothing changes any more."""
        for _ in range(60):
            for uid in list(self.undelivered):
                self.deliver(uid)
            self.step()
            while self.actions:
                self.perform(0, is_done=True, is_told_done=True)
            self.bind_all()
            self.now += 1.5
            self.check()


def _bound(seen: QueuedPod) -> PlacedMember:
    assert seen.placement is not None
    return PlacedMember(request=seen.request, placement=seen.placement)
