"""The product's planner and cells, with a twin of the shell that takes its actions at once.

A gang that has its places runs at once: no watch is late here, and no kube-scheduler refuses. A
victim ends whole, once the grace of the document is over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf

from extender.cells.views.listings import run_to_end
from extender.queue.gang_planner import GangPlanner
from extender.queue.lines.gang_places import Rank
from extender.queue.model import Action, EvictPod, QueuedPod, ReleasePod
from extender.queue.order.facts import QueueFacts
from extender.queue.order.gang_order import GangOrder
from extender.queue.protection.minimum_runs import MinimumRuns
from policy.placement import Placement
from policy.queues.pools import Pool
from policy.queues.queues import DefragmentationMode, Queues
from policy.submission import GangKey, PodUid
from timemachine.model import World
from timemachine.planned.cells import WorldCells, build_engine
from timemachine.planned.current_order import CurrentOrder
from timemachine.planned.gangs import PlayedGang
from timemachine.planned.nodes import RoomyNodes
from timemachine.planned.ports import Change
from timemachine.planned.run_times import LearnedRunTimes

RunTimesOf = Callable[[Queues], LearnedRunTimes]


@dataclass(slots=True, eq=False)
class _Shown:
    """A gang that the planner sees."""

    gang: PlayedGang
    pods: dict[PodUid, QueuedPod]
    places: list[Placement] = field(default_factory=list)
    """Those of the members that run."""

    @property
    def has_started(self) -> bool:
        return len(self.places) >= self.gang.least


class PlannedGangs:
    """The gangs that wait for cells or run."""

    longest_seconds = 45.0

    def __init__(self, world: World, *, run_times: RunTimesOf = LearnedRunTimes) -> None:
        self._rules = world.policy.queues
        self._engine = build_engine(world)
        self.cells = WorldCells(self._engine, world.topology)
        self.run_times = run_times(self._rules)
        self.planner = GangPlanner(
            self.cells,
            RoomyNodes(node.name for node in world.nodes),
            self,
            order=GangOrder(without_proposals(self._rules), world.policy.classes),
            run_times=self.run_times,
        )
        self._order = CurrentOrder(self.planner.ranking, world)
        self._shown: dict[GangKey, _Shown] = {}
        self._protected = MinimumRuns()
        self._told: dict[GangKey, float] = {}
        """Victims, and when each of them ends."""
        self._ending: list[tuple[float, GangKey]] = []
        self.waiting = 0
        """How many gangs wait."""
        self._changes: list[Change] = []
        """Since the last call of `work`."""

    def is_open(self, uid: PodUid) -> bool:
        """Tell whether kube-scheduler waits for an answer: pods are bound without being asked."""
        return False

    def submit(self, gang: PlayedGang) -> None:
        """Show the pods of a gang to the planner."""
        self.waiting += 1
        self.run_times.submit(gang.key, gang.arrival, gang.class_name)
        pods = gang.pods()
        self._shown[gang.key] = _Shown(gang, {pod.uid: pod for pod in pods})
        for pod in pods:
            self.planner.see(pod)

    def shown(self, gang: GangKey) -> PlayedGang:
        """Return a gang that waits or runs."""
        return self._shown[gang].gang

    def heads(self) -> dict[Pool, GangKey]:
        """Return the first gang of each pool for which gangs wait."""
        waiting = self.planner.waiting
        heads = ((pool, waiting.head(pool)) for pool in waiting.pools())
        return {pool: gang for pool, gang in heads if gang is not None}

    def rank(self, gang: PlayedGang, *, now: float) -> Rank:
        """Return the rank of a gang that waits for quota."""
        arrival = gang.arrival
        self.run_times.submit(gang.key, arrival, gang.class_name)
        facts = QueueFacts(
            gang=gang.key,
            user=arrival.user,
            group=gang.group,
            vc=arrival.vc,
            class_name=gang.class_name,
            priority=gang.priority,
            leaf_cells=arrival.leaf_cells,
            leaf_type=arrival.leaf_type,
            asked=arrival.submitted,
            run_time=self.run_times.expected(gang.key),
        )
        standing = self.planner.ranking.order.standing(facts, now=now)
        return float(standing.level), standing.rank, standing.asked, gang.key

    def rank_anew(self, gang: PlayedGang) -> None:
        """A gang has another class now; it may run already."""
        shown = self._shown[gang.key]
        shown.gang = gang
        self.run_times.submit(gang.key, gang.arrival, gang.class_name)
        if shown.places:
            self._engine.rerank({gang.key: gang.priority})
        for uid, pod in shown.pods.items():
            request = replace(pod.request, priority=gang.priority)
            shown.pods[uid] = replace(pod, request=request, class_name=gang.class_name)
            self.planner.see(shown.pods[uid])
        self.planner.wake()

    def places(self, gang: GangKey) -> Sequence[Placement]:
        """Return where the members of a gang run."""
        return tuple(self._shown[gang].places)

    def next_time(self) -> float:
        """Return when something happens here without an event outside; infinite if nothing does."""
        calendar = self.planner.reservations.calendar.next_time()
        ending = self._ending[0][0] if self._ending else inf
        return min(inf if calendar is None else calendar, ending, self._protected.next_end)

    def end(self, gang: GangKey, *, at: float, is_whole: bool = True) -> None:
        """End all pods of a gang that runs; not whole if others have preempted it."""
        shown = self._shown.pop(gang)
        self._order.end(shown.gang, at=at)
        self.run_times.now = at
        self._told.pop(gang, None)
        self._protected.end(gang)
        self.run_times.end(gang, is_whole=is_whole)
        for uid, pod in shown.pods.items():
            if self.cells.has_place(uid):
                self.planner.wake(self.cells.freed_by(pod.request))
                self.cells.forget_member(uid)
            self.planner.lose(uid)

    def work(self, now: float) -> list[Change]:
        """Make steps until the planner has nothing to do; return which gangs started or ended."""
        self.run_times.now = now
        self._end_victims(now)
        self._protect(now)
        self.planner.ranking.note_time(now)
        self._order.refresh(now=now)
        has_more = True
        while has_more:
            step = self.planner.step(now=now)
            if step.to_prepare is not None:
                run_to_end(self._engine.prepare_stepwise(step.to_prepare))
            for action in step.actions:
                self._execute(action, now=now)
            has_more = step.has_more or bool(step.actions) or step.to_prepare is not None
        changes, self._changes = self._changes, []
        return changes

    def _execute(self, action: Action, *, now: float) -> None:
        if isinstance(action, EvictPod):
            self._evict(action, now=now)
            return
        assert isinstance(action, ReleasePod), action
        gang = self.planner.seen.find_of(action.uid)
        assert gang is not None, "only pods that were shown are released"
        key, shown = gang.key, self._shown[gang.key]
        pod, place = shown.pods[action.uid], action.placement
        seen = replace(pod, is_gated=False, placement=place, nominated=place.node, node=place.node)
        shown.pods[pod.uid] = seen
        self.cells.bind(pod.request, place)
        self.planner.succeed(action, now=now)
        self.planner.see(seen)
        had_started = shown.has_started
        shown.places.append(place)
        if shown.has_started and not had_started:
            self._start(key, now=now)

    def _start(self, gang: GangKey, *, now: float) -> None:
        self.waiting -= 1
        self._changes.append(Change(gang=gang, is_start=True, places=self.places(gang)))
        self._order.start(self._shown[gang].gang, at=now)
        self.run_times.start(gang)
        if self._rules.preemption.minimum_run:
            self._protected.start(gang, at=now)
            self._protect(now)

    def _protect(self, now: float) -> None:
        """Tell the engine whose minimum run has begun or is over."""
        for gang in self._protected.update(self._rules.preemption.minimum_run, now=now):
            seconds = self._protected.minimum_run(gang)
            is_new = self._engine.observe_minimum_run(gang, seconds=seconds)
            if is_new and not seconds:
                first = next(iter(self._shown[gang].pods.values()))
                self.planner.wake(self.cells.freed_by(first.request))

    def _evict(self, action: EvictPod, *, now: float) -> None:
        """End a victim whole, once its grace is over."""
        if action.victim in self._shown and action.victim not in self._told:
            due = now + self._rules.preemption.grace
            self._told[action.victim] = due
            heappush(self._ending, (due, action.victim))
            self._end_victims(now)

    def _end_victims(self, now: float) -> None:
        while self._ending and self._ending[0][0] <= now:
            due, gang = heappop(self._ending)
            if self._told.get(gang) == due:  # else it has ended by itself
                self._changes.append(Change(gang=gang, is_start=False, places=self.places(gang)))
                self.end(gang, at=now, is_whole=False)


def without_proposals(queues: Queues) -> Queues:
    """Search no moves that would only be proposed: in a play there is no owner to follow them."""
    if queues.defragmentation.mode is not DefragmentationMode.PROPOSE:
        return queues
    off = replace(queues.defragmentation, mode=DefragmentationMode.OFF)
    return replace(queues, defragmentation=off)
