"""Queues through which a trace is played: the product's planner, and strict first in, first out.

Both ask the real engine, and both are played by `timemachine.play`.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf

from bench.queue.run_times import TraceRunTimes
from extender.cells.model import MemberRequest, Place
from extender.queue.lines.gang_places import Rank
from policy.placement import Placement
from policy.queues.pools import Pool
from policy.submission import GangKey, VcName
from timemachine.model import World
from timemachine.planned.cells import WorldCells, build_engine
from timemachine.planned.gangs import PlayedGang
from timemachine.planned.nodes import RoomyNodes
from timemachine.planned.planned_gangs import PlannedGangs, RunTimesOf
from timemachine.planned.ports import Change, Gangs


def planned(*, run_times: RunTimesOf = TraceRunTimes) -> Callable[[World], Gangs]:
    """Return what plans the gangs of a trace as the product does."""
    return partial(PlannedGangs, run_times=run_times)


class StrictQueue:
    """First in, first out, for each VC: no gang starts before one that was submitted earlier.

    Implements `timemachine.planned.ports.Gangs`; quotas and preemption do not belong here.
    """

    def __init__(self, world: World) -> None:
        self._nodes = RoomyNodes(node.name for node in world.nodes).all
        self._cells = WorldCells(build_engine(world), world.topology)
        self._lines: dict[VcName, deque[PlayedGang]] = {}
        self._changed: dict[VcName, None] = {}
        self._running: dict[GangKey, Sequence[MemberRequest]] = {}
        self.waiting = 0

    def submit(self, gang: PlayedGang) -> None:
        """Put a gang at the end of its VC's line."""
        line = self._lines.setdefault(gang.arrival.vc, deque())
        line.append(gang)
        self.waiting += 1
        if len(line) == 1:
            self._changed[gang.arrival.vc] = None

    def end(self, gang: GangKey, *, at: float) -> None:
        """End all members of a gang."""
        members = self._running.pop(gang)
        for request in members:
            self._cells.forget_member(request.member)
        self._changed[members[0].vc] = None

    def work(self, now: float) -> Sequence[Change]:
        """Start the first gangs of each line, up to the first one that does not fit."""
        started: list[Change] = []
        for vc in self._changed:
            line = self._lines[vc]
            while line and self._starts(line[0], now):
                gang = line.popleft().key
                started.append(Change(gang=gang, is_start=True, places=self.places(gang)))
        self._changed.clear()
        self.waiting -= len(started)
        return started

    def _starts(self, gang: PlayedGang, now: float) -> bool:
        members = gang.requests()
        for request in members:
            decision = self._cells.plan(request, candidate_nodes=self._nodes, now=now)
            if not isinstance(decision, Place):
                return False
            self._cells.apply(decision, candidate_nodes=self._nodes, now=now)
            self._cells.bind(request, decision.placement)
        self._running[gang.key] = members
        return True

    def next_time(self) -> float:
        """Say that nothing happens without an event outside."""
        return inf

    def places(self, gang: GangKey) -> Sequence[Placement]:
        """Return where the members of a gang run."""
        places = (self._cells.placement(one.member) for one in self._running[gang])
        return [place for place in places if place is not None]

    def heads(self) -> Mapping[Pool, GangKey]:
        """Say nothing of pools: lines are by VC."""
        return {}

    def rank(self, gang: PlayedGang, *, now: float) -> Rank:
        """Return the rank of a gang that waits for quota: none does."""
        raise NotImplementedError

    def rank_anew(self, gang: PlayedGang) -> None:
        """A gang has another class: none has."""
        raise NotImplementedError
