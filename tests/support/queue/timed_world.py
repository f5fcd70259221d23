"""A planner whose gangs start at once and end on time, by a clock that a test advances."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from extender.cells.engine import Engine
from extender.cells.model import MemberRequest, Preempt
from extender.cells.views.listings import run_to_end
from extender.queue.forecast.model import NOTHING_KNOWN, RunTime
from extender.queue.gang_planner import GangPlanner
from extender.queue.model import EvictPod, QueuedPod, ReleasePod
from extender.queue.order.gang_order import GangOrder
from extender.queue.reserve.model import Reservation
from policy.queues.alternatives import Alternative, GangTerms, all_terms
from policy.queues.queues import DEFAULT_QUEUES, Queues
from policy.submission import GangKey, NodeName, PodUid
from policy.topology import Topology
from tests.support.cells.builders import GangBuilder, a_node_cell, nodes_of
from tests.support.cells.engine_calls import check, observe_bound
from tests.support.queue.engine_cells import EngineCells
from tests.support.queue.unlimited_nodes import UnlimitedNodes

LEASE_SECONDS = 20.0


@dataclass
class StatedRunTimes:
    """What is predicted of each gang, true or not; a gang that is overdue ends in a moment."""

    of: dict[GangKey, RunTime] = field(default_factory=dict)
    started: dict[GangKey, float] = field(default_factory=dict)
    clock: Callable[[], float] = lambda: 0.0

    def expected(self, gang: GangKey) -> RunTime:
        return self.of.get(gang, NOTHING_KNOWN)

    def remaining(self, gang: GangKey, *, now: float) -> RunTime:
        known = self.expected(gang)
        if known.median is None:
            return known
        elapsed = now - self.started.get(gang, now)
        return replace(known, median=max(1.0, known.median - elapsed))

    def elapsed(self, gang: GangKey) -> float | None:
        started = self.started.get(gang)
        return None if started is None else self.clock() - started


class TimedWorld(UnlimitedNodes):
    """Gangs that are submitted, start and end; nothing fails."""

    longest_seconds = 45.0

    def __init__(self, topology: Topology, *, queues: Queues = DEFAULT_QUEUES) -> None:
        super().__init__(nodes_of(topology))
        self.now = 1000.0
        self.topology = topology
        self.engine = Engine(lease_seconds=LEASE_SECONDS, topology=topology)
        for node in self.nodes:
            self.engine.observe_node(a_node_cell(node))
        self.cells = EngineCells(
            self.engine, (), may_preempt=lambda uid: self.pods[uid].may_preempt
        )
        self.run_times = StatedRunTimes(clock=lambda: self.now)
        self.planner = self.build_planner(queues)
        self.pods: dict[PodUid, QueuedPod] = {}
        self._members: dict[GangKey, Sequence[MemberRequest]] = {}
        self._runs: dict[GangKey, float] = {}
        self._ends: list[tuple[float, GangKey]] = []
        self._ran_on: dict[GangKey, list[NodeName]] = {}
        self.changes: list[Reservation] = []
        self.backfilled: list[GangKey] = []
        self.may_move: set[GangKey] = set()
        """Gangs that may be ended for others; all others must not."""
        self.guests: set[GangKey] = set()
        """Gangs that end at once when they are to be ended for others."""
        self.moves: list[Preempt] = []
        self.evicted: list[EvictPod] = []

    @property
    def started(self) -> dict[GangKey, float]:
        return self.run_times.started

    def build_planner(self, queues: Queues) -> GangPlanner:
        order = GangOrder(queues)
        return GangPlanner(self.cells, self, self, order=order, run_times=self.run_times)

    def _may_preempt(self, uid: PodUid) -> bool:
        return self.pods[uid].may_preempt

    def is_open(self, uid: PodUid) -> bool:
        return False

    def submit(
        self,
        gang: GangBuilder,
        *,
        runs: float,
        predicted: float | None = None,
        limit: float | None = None,
        may_preempt: bool = True,
        runs_known: int = 100,
        user: str = "",
        alternatives: Sequence[Alternative] = (),
    ) -> GangKey:
        """Submit a gang that runs so long, whatever is predicted."""
        members = [replace(one, created=self.now) for one in gang.members()]
        key = members[0].gang
        self._members[key], self._runs[key] = members, runs
        self.run_times.of[key] = RunTime(
            median=predicted, high=predicted, limit=limit, runs=runs_known
        )
        for request in members:
            pod = QueuedPod(
                request=request,
                gang_size=len(members),
                is_gated=True,
                may_preempt=may_preempt,
                user=user,
                alternatives=tuple(alternatives),
                forms=_forms(request, alternatives),
            )
            self.pods[pod.uid] = pod
            self.planner.see(pod)
        self.work()
        return key

    def work(self) -> None:
        """Make steps until the planner has nothing to do."""
        has_more = True
        while has_more:
            self.planner.ranking.note_time(self.now)
            step = self.planner.step(now=self.now)
            self.changes += step.reservations
            self.backfilled += step.backfilled
            if step.to_prepare is not None:
                run_to_end(self.engine.prepare_stepwise(step.to_prepare))
            self.moves += step.moves
            for action in step.actions:
                if isinstance(action, EvictPod) and action.victim in self.guests:
                    self.planner.succeed(action, now=self.now)
                    if action.victim in self._members:
                        self.end(action.victim)
                    continue
                if isinstance(action, EvictPod) and action.victim in self.may_move:
                    self.evicted.append(action)
                    continue
                assert isinstance(action, ReleasePod), action
                self._start(action)
            has_more = step.has_more or bool(step.actions) or step.to_prepare is not None

    def settle(self) -> None:
        """Make steps until no reservation changes: each step makes one at most."""
        known = None
        while known != (known := self.planner.reservations.in_force()):
            self.work()

    def _start(self, action: ReleasePod) -> None:
        pod, place = self.pods[action.uid], action.placement
        seen = replace(pod, is_gated=False, placement=place, node=place.node)
        self.pods[pod.uid] = seen
        observe_bound(
            self.engine,
            pod.request,
            node=place.node,
            leaf_cells=place.leaf_cells,
            placement=place,
        )
        self.planner.succeed(action, now=self.now)
        self.planner.see(seen)
        gang = pod.request.gang
        self._ran_on.setdefault(gang, []).append(place.node)
        if gang not in self.started:
            self.started[gang] = self.now
            heappush(self._ends, (self.now + self._runs[gang], gang))

    def advance(self, seconds: float) -> None:
        """Let time pass: gangs end, and the planner works after each."""
        until = self.now + seconds
        while self._ends and self._ends[0][0] <= until:
            self.now, gang = heappop(self._ends)
            if gang in self._members:  # or it was ended for another one
                self.end(gang)
                self.work()
        self.now = until
        self.work()

    def end(self, gang: GangKey) -> None:
        """All pods of a gang end."""
        for request in self._members.pop(gang):
            del self.pods[request.member]
            self.engine.forget_member(request.member)
            self.planner.lose(request.member)
        self.planner.wake()

    def lose_node(self, node: NodeName) -> None:
        """A node fails."""
        self.nodes[node] = False
        self.engine.observe_node(a_node_cell(node, is_healthy=False))
        self.planner.wake()
        self.work()

    def nodes_of(self, gang: GangKey) -> list[NodeName]:
        """The nodes on which the members of a gang were started."""
        return self._ran_on.get(gang, [])

    def check(self) -> None:
        """The engine agrees with itself."""
        check(self.engine)


def _forms(request: MemberRequest, alternatives: Sequence[Alternative]) -> tuple[GangTerms, ...]:
    asked = GangTerms(vc=request.vc, leaf_type=request.leaf_type, gang_min=request.gang_min)
    return all_terms(asked, tuple(alternatives)) if alternatives else ()
