"""No gang that could start is left asleep, whatever has changed: cells, documents, clock, windows.

After each event the planner is let do what it does on its own, and some seconds pass. Then it is
told that anything may have changed, and looks at every gang anew: none may start by that alone.
"""

from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from extender.cells.freed_cells import freed_by
from extender.queue.forecast.model import RunTime
from policy.classes import NO_CLASSES
from policy.queues.queues import (
    DEFAULT_QUEUES,
    DefragmentationMode,
    DefragmentationRules,
    PreemptionRules,
    ReservationRules,
    RunTimeRules,
)
from policy.queues.who import Who
from policy.queues.windows import AdvanceReservation, MaintenanceWindow
from policy.submission import GangKey, NodeName, VcName
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang, a_node_cell
from tests.support.queue.timed_world import TimedWorld

HOUR = 3600.0
ANN = "ann"
OLD = "old"
RULES: dict[str, list[Any]] = {
    "preemption": [PreemptionRules(), PreemptionRules(minimum_run=600.0)],
    "reservation": [
        ReservationRules(after=60.0),
        ReservationRules(after=60.0, sticky=False),
        ReservationRules(after=60.0, per_pool=2),
        ReservationRules(after=0.0, per_pool=0),
    ],
    "run_time": [
        RunTimeRules(),
        RunTimeRules(cap=600.0),
        RunTimeRules(longest={"default": 1800.0}),
    ],
    "defragmentation": [
        DefragmentationRules(),
        DefragmentationRules(mode=DefragmentationMode.PERFORM, maximum_cost=24 * HOUR),
    ],
}


class _PreciseWorld(TimedWorld):
    """The planner is told exactly which leaf cells became free, as in the product."""

    def end(self, gang: GangKey) -> None:
        members = self._members.pop(gang)
        freed = [freed_by(one, self.engine.placement(one.member), self.topology) for one in members]
        for request, cells in zip(members, freed, strict=True):
            del self.pods[request.member]
            self.engine.forget_member(request.member)
            self.planner.lose(request.member)
            self.planner.wake(cells)

    def submit(self, gang: GangBuilder, **how: Any) -> GangKey:
        self.guests.add(gang.members()[0].gang)
        return super().submit(gang, **how)

    def set_health(self, node: NodeName, *, is_healthy: bool) -> None:
        self.nodes[node] = is_healthy
        self.engine.observe_node(a_node_cell(node, is_healthy=is_healthy))
        self.planner.wake()
        self.work()

    def look_again(self) -> list[GangKey]:
        """Look at every gang anew; return the gangs that start by that alone."""
        before = set(self.started)
        for gang in self.planner.seen:
            self.planner.seen.note_change(gang.key)
        self.planner.wake()
        self.work()
        return sorted(set(self.started) - before)


class SleepingHistory(RuleBasedStateMachine):
    """Histories with reservations, windows and documents that change."""

    def __init__(self) -> None:
        super().__init__()
        cluster = a_cluster("2 racks x 2 nodes x 4").chain("2 nodes x 4", leaf_type=OLD)
        cluster = cluster.promising("a", node=2).promising("b", node=1)
        cluster = cluster.promising("a", chain="node", node=2)
        queues = replace(DEFAULT_QUEUES, reservation=ReservationRules(after=60.0))
        self.world = _PreciseWorld(cluster.build(), queues=queues)
        self.born = 0

    @rule(
        sizes=st.sampled_from([(1,), (2,), (4,), (4, 4), (2, 2, 2), (4, 4, 4)]),
        vc=st.sampled_from("aab"),
        priority=st.sampled_from([-1, -1, 0, 0, 5]),
        leaf_type=st.sampled_from([None, None, "gpu", OLD]),
        runs=st.sampled_from([100.0, 1000.0, 5000.0]),
        predicted=st.sampled_from([None, 100.0, 1000.0]),
        limit=st.sampled_from([None, None, 1000.0, 5000.0]),
        known=st.sampled_from([0, 100]),
        may_preempt=st.booleans(),
        user=st.sampled_from(["", ANN]),
    )
    def submit(
        self, *, sizes: tuple[int, ...], vc: str, priority: int, leaf_type: str | None, **how: Any
    ) -> None:
        self.born += 1
        gang = a_gang(f"g{self.born}").of(*sizes).in_vc(vc).at(priority)
        if leaf_type is not None:
            gang = gang.typed(leaf_type)
        how["runs_known"] = how.pop("known")
        self.world.submit(gang, **how)
        self._check()

    @rule(seconds=st.sampled_from([2.0, 30.0, 70.0, 400.0, 900.0]))
    def advance(self, seconds: float) -> None:
        self.world.advance(seconds)
        self._check()

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        running = sorted(self.world.started.keys() & self.world._members.keys())
        if running:
            self.world.end(data.draw(st.sampled_from(running)))
            self._check()

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        waiting = sorted(self.world._members.keys() - self.world.started.keys())
        if waiting:
            self.world.end(data.draw(st.sampled_from(waiting)))
            self._check()

    @rule(data=st.data(), is_healthy=st.booleans())
    def turn_node(self, data: st.DataObject, is_healthy: bool) -> None:
        node = data.draw(st.sampled_from(sorted(self.world.nodes)))
        self.world.set_health(node, is_healthy=is_healthy)
        self._check()

    @rule(data=st.data(), seconds=st.sampled_from([50.0, 500.0]))
    def learn(self, data: st.DataObject, seconds: float) -> None:
        """It becomes known how long a gang runs."""
        waiting = sorted(self.world._members.keys() - self.world.started.keys())
        if waiting:
            key = data.draw(st.sampled_from(waiting))
            self.world.run_times.of[key] = RunTime(median=seconds, high=seconds, runs=100)
            self._check()

    @rule(data=st.data(), name=st.sampled_from(sorted(RULES)))
    def change_rules(self, data: st.DataObject, name: str) -> None:
        self._put(**{name: data.draw(st.sampled_from(RULES[name]))})

    @rule(
        begins=st.sampled_from([-50.0, 300.0, 2000.0]),
        lasts=st.sampled_from([100.0, 1000.0]),
        is_there=st.booleans(),
        members=st.sampled_from([1, 2]),
    )
    def reserve(self, begins: float, lasts: float, is_there: bool, members: int) -> None:
        entry = AdvanceReservation(
            name="nightly",
            vc=VcName("a"),
            members=members,
            leaf_cells=4,
            who=Who(users=frozenset({ANN})),
            begins=self.world.now + begins,
            ends=self.world.now + begins + lasts + 60,
        )
        self._put(reservations=(entry,) if is_there else ())

    @rule(
        data=st.data(),
        begins=st.sampled_from([-50.0, 300.0, 2000.0]),
        lasts=st.sampled_from([100.0, 1000.0]),
        opportunistic=st.sampled_from(["drain", "allow"]),
        is_there=st.booleans(),
    )
    def maintain(
        self, data: st.DataObject, begins: float, lasts: float, opportunistic: Any, is_there: bool
    ) -> None:
        window = MaintenanceWindow(
            name="firmware",
            nodes=(data.draw(st.sampled_from(sorted(self.world.nodes))),),
            begins=self.world.now + begins,
            ends=self.world.now + begins + lasts + 60,
            notice=0.0,
            opportunistic=opportunistic,
        )
        self._put(maintenance=(window,) if is_there else ())

    @rule(seconds=st.sampled_from([-5.0, -300.0, -5000.0, 5000.0]))
    def turn_clock(self, seconds: float) -> None:
        """The clock was wrong; runs end by another clock."""
        world = self.world
        world.now += seconds
        world.started.update({key: at + seconds for key, at in world.started.items()})
        world._ends[:] = [(at + seconds, key) for at, key in world._ends]
        world.work()
        self._check()

    def _put(self, **rules: Any) -> None:
        ranking = self.world.planner.ranking
        if ranking.order.configure(replace(ranking.order.queues, **rules), NO_CLASSES):
            for _ in ranking.reorder():
                pass
        self.world.work()
        self._check()

    def _check(self) -> None:
        for _ in range(4):
            self.world.advance(1.1)
        self.world.settle()
        assert self.world.look_again() == []


TestSleepingHistory = SleepingHistory.TestCase
TestSleepingHistory.settings = settings(stateful_step_count=25, deadline=None)
