"""Queues through which a trace is replayed: the product's planner, and strict first in, first out.

Both ask the real engine. A gang that has its places runs at once: no watch is late here, and no
kube-scheduler refuses.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from bench.queue.cells import ReplayedCells
from bench.queue.run_times import LearnedRunTimes
from bench.queue.trace import Job
from extender.cells.engine import Engine
from extender.cells.freed_cells import freed_by
from extender.cells.model import MemberRequest, NodeCell, Place
from extender.cells.views.listings import run_to_end
from extender.queue.gang_planner import GangPlanner
from extender.queue.model import Action, EvictPod, QueuedPod, ReleasePod
from extender.queue.order.gang_order import GangOrder
from policy.queues.queues import DEFAULT_QUEUES, Queues
from policy.submission import GangKey, PodUid, VcName
from policy.topology import PhysicalCell, Topology
from tests.support.queue.unlimited_nodes import UnlimitedNodes

Members = list[MemberRequest]


class ReplayedQueue(Protocol):
    """A queue of gangs on a cluster."""

    waiting: int
    """The number of gangs that wait."""
    evicted: list[GangKey]
    """Gangs that ended for others since this was last cleared."""

    def submit(self, job: Job, members: Members) -> None:
        """A gang is created."""

    def end(self, members: Members) -> None:
        """A gang that runs ends."""

    def work(self, now: float) -> list[GangKey]:
        """Start the gangs that may start now, and return them."""


def build_engine(topology: Topology) -> tuple[Engine, UnlimitedNodes]:
    """Build an engine whose nodes are all healthy."""
    engine = Engine(lease_seconds=3600, topology=topology)
    nodes = [cell for chain in topology.chains.values() for cell in _nodes(chain.cells)]
    for cell in nodes:
        assert cell.node is not None
        leaves = sum(len(child.children) for child in cell.children)
        engine.observe_node(NodeCell(name=cell.node, leaf_type=None, leaf_count=leaves))
    return engine, UnlimitedNodes(cell.node for cell in nodes if cell.node is not None)


def _nodes(cells: tuple[PhysicalCell, ...]) -> list[PhysicalCell]:
    found: list[PhysicalCell] = []
    for cell in cells:
        found += [cell] if cell.node is not None else _nodes(cell.children)
    return found


class PlannedQueue:
    """The product's planner, with a twin of the shell that executes its actions at once."""

    longest_seconds = 45.0

    def __init__(
        self,
        topology: Topology,
        *,
        queues: Queues = DEFAULT_QUEUES,
        run_times: Callable[[Queues], LearnedRunTimes] = LearnedRunTimes,
    ) -> None:
        self._topology = topology
        self._engine, nodes = build_engine(topology)
        self.cells = ReplayedCells(self._engine)
        self._run_times = run_times(queues)
        self._planner = GangPlanner(
            self.cells, nodes, self, order=GangOrder(queues), run_times=self._run_times
        )
        self._pods: dict[PodUid, QueuedPod] = {}
        self._members: dict[GangKey, Members] = {}
        self._unbound: dict[GangKey, int] = {}
        self.waiting = 0
        self.evicted: list[GangKey] = []

    def is_open(self, uid: PodUid) -> bool:
        """Tell whether kube-scheduler waits for an answer: pods are bound without being asked."""
        return False

    def submit(self, job: Job, members: Members) -> None:
        """Show the pods of a gang to the planner."""
        self.waiting += 1
        self._run_times.submit(members[0].gang, job)
        self._members[members[0].gang] = members
        self._unbound[members[0].gang] = len(members)
        for request in members:
            pod = QueuedPod(request=request, gang_size=len(members), is_gated=True)
            self._pods[pod.uid] = pod
            self._planner.see(pod)

    def end(self, members: Members) -> None:
        """End all pods of a gang."""
        self._end(members, is_whole=True)

    def _end(self, members: Members, *, is_whole: bool) -> None:
        del self._members[members[0].gang]
        self._run_times.end(members[0].gang, is_whole=is_whole)
        for request in members:
            del self._pods[request.member]
            place = self.cells.placement(request.member)
            self._planner.wake(freed_by(request, place, self._topology))
            self.cells.forget_member(request.member)
            self._planner.lose(request.member)

    def work(self, now: float) -> list[GangKey]:
        """Make steps until the planner has nothing to do."""
        started: list[GangKey] = []
        self._run_times.now = now
        self._planner.ranking.note_time(now)
        has_more = True
        while has_more:
            step = self._planner.step(now=now)
            if step.to_prepare is not None:
                run_to_end(self._engine.prepare_stepwise(step.to_prepare))
            for action in step.actions:
                self._execute(action, started, now=now)
            has_more = step.has_more or bool(step.actions) or step.to_prepare is not None
        self.waiting -= len(started)
        return started

    def _execute(self, action: Action, started: list[GangKey], *, now: float) -> None:
        if isinstance(action, EvictPod):
            self._evict(action)
            return
        assert isinstance(action, ReleasePod), action
        pod = self._pods[action.uid]
        place = action.placement
        seen = replace(pod, is_gated=False, placement=place, nominated=place.node, node=place.node)
        self._pods[pod.uid] = seen
        self.cells.bind(pod.request, place)
        self._planner.succeed(action, now=now)
        self._planner.see(seen)
        gang = pod.request.gang
        self._unbound[gang] -= 1
        if not self._unbound[gang]:
            del self._unbound[gang]
            self._run_times.start(gang)
            started.append(gang)

    def _evict(self, action: EvictPod) -> None:
        """End a victim whole, at once."""
        members = self._members.get(action.victim)
        if members is not None:
            self.evicted.append(action.victim)
            self._end(members, is_whole=False)


class StrictQueue:
    """First in, first out, for each VC: no gang starts before one that was submitted earlier."""

    def __init__(self, topology: Topology) -> None:
        engine, self._nodes = build_engine(topology)
        self.cells = ReplayedCells(engine)
        self._lines: dict[VcName, deque[Members]] = {}
        self._changed: dict[VcName, None] = {}
        self.waiting = 0
        self.evicted: list[GangKey] = []

    def submit(self, job: Job, members: Members) -> None:
        """Put a gang at the end of its VC's line."""
        line = self._lines.setdefault(members[0].vc, deque())
        line.append(members)
        self.waiting += 1
        if len(line) == 1:
            self._changed[members[0].vc] = None

    def end(self, members: Members) -> None:
        """End all members of a gang."""
        for request in members:
            self.cells.forget_member(request.member)
        self._changed[members[0].vc] = None

    def work(self, now: float) -> list[GangKey]:
        """Start the first gangs of each line, up to the first one that does not fit."""
        started: list[GangKey] = []
        for vc in self._changed:
            line = self._lines[vc]
            while line and self._starts(line[0], now):
                started.append(line.popleft()[0].gang)
        self._changed.clear()
        self.waiting -= len(started)
        return started

    def _starts(self, members: Members, now: float) -> bool:
        for request in members:
            nodes = self._nodes.nodes
            decision = self.cells.plan(request, candidate_nodes=nodes, now=now)
            if not isinstance(decision, Place):
                return False
            self.cells.apply(decision, candidate_nodes=nodes, now=now)
            self.cells.bind(request, decision.placement)
        return True
