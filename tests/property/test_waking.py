"""An event wakes only the lines that it may help, and no gang that could start is left asleep.

Every history is played twice: once with the planner as it is, and once with a planner that is told
after each event that all cells may have changed, and that plans every gang. Both must ask for the
same actions.
"""

from collections.abc import Callable
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from extender.cells.freed_cells import FreedCells
from extender.cells.views.listings import run_to_end
from extender.queue.gang_planner import GangPlanner
from extender.queue.lines.shapes import GangShape
from extender.queue.lines.sleepers import Lack
from extender.queue.model import Notice
from extender.queue.reserve.room_bounds import RoomBounds
from policy.submission import GangKey
from policy.topology import Topology
from tests.support.queue.planner_history import CLUSTERS, PlannerHistory
from tests.support.queue.room_world import RoomWorld

_CHANGES: Final = (
    "bind", "create", "delete", "deliver", "hang_up", "lead", "load", "perform", "protect",
    "schedule", "set_health", "settle", "step", "tear",
)  # fmt: skip


class _DrainedWorld(RoomWorld):
    """The planner decides about every gang that may fit before anything else happens."""

    def think(self) -> dict[GangKey, Notice | None]:
        notices: dict[GangKey, Notice | None] = {}
        has_more = True
        while has_more:
            step = self.planner.step(now=self.now)
            self.actions += step.actions
            notices |= step.notices
            has_more = step.has_more or step.to_prepare is not None
            if step.to_prepare is not None:
                run_to_end(self.engine.prepare_stepwise(step.to_prepare))
        return notices


class _WakingPlanner(GangPlanner):
    """A planner whose lines all wake after each event."""

    def wake(self, freed: FreedCells | None = None) -> None:
        super().wake(None)


class _NoBounds(RoomBounds):
    """Rules out no gang."""

    def lack(self, shape: GangShape, gang: GangKey) -> Lack | None:
        return None

    def is_settled(self, shape: GangShape, gang: GangKey) -> bool:
        return False


class _WakingWorld(_DrainedWorld):
    def lead(self) -> None:
        super().lead()
        self.planner.__class__ = _WakingPlanner
        self.planner._bounds.__class__ = _NoBounds


class _Pair:
    """Two worlds in which the same happens; what is read is read from the first."""

    def __init__(self, topology: Topology) -> None:
        self._world, self._twin = _DrainedWorld(topology), _WakingWorld(topology)

    def __getattr__(self, name: str) -> Any:
        return self._on_both(name) if name in _CHANGES else getattr(self._world, name)

    def _on_both(self, name: str) -> Callable[..., None]:
        def change(*args: object, **named: object) -> None:
            for world in (self._world, self._twin):
                getattr(world, name)(*args, **named)
            self._compare()

        return change

    @property
    def now(self) -> float:
        return self._world.now

    @now.setter
    def now(self, now: float) -> None:
        self._world.now = self._twin.now = now

    def _compare(self) -> None:
        assert self._world.actions == self._twin.actions
        for uid in self._world.pods:
            assert self._world.engine.placement(uid) == self._twin.engine.placement(uid), uid
        ours, theirs = (world.planner.ranking.in_order() for world in (self._world, self._twin))
        assert [facts.gang for facts, _ in ours] == [facts.gang for facts, _ in theirs]


class WakingHistory(PlannerHistory):
    """The histories of the planner, in two worlds."""

    @initialize(cluster=st.sampled_from(sorted(CLUSTERS)))
    def start(self, cluster: str) -> None:
        self.world = _Pair(CLUSTERS[cluster]().build())  # type: ignore[assignment]
        self.born = 0


TestWakingHistory = WakingHistory.TestCase
TestWakingHistory.settings = settings(stateful_step_count=40, deadline=None)
