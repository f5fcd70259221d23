"""Builds what serves the windows of the Queues document: their nodes, notices and listing."""

from extender.inspection.queue.calendar_routes import CalendarRoutes
from extender.outcomes.pod_events import PodEvents
from extender.planning.maintenance.concerned_gangs import ConcernedGang, find_concerned
from extender.planning.maintenance.window_nodes import WindowNodes
from extender.planning.maintenance.window_notices import WindowNotices
from extender.planning.planning_loop import PlanningLoop
from extender.planning.promise_keeper import PromiseKeeper
from extender.wiring import ExtenderState
from policy.queues.windows import MaintenanceWindow


class CalendarParts:
    """What follows the windows of the Queues document, beside the planner."""

    def __init__(
        self, state: ExtenderState, planner: PlanningLoop, promises: PromiseKeeper
    ) -> None:
        self._members = state.cluster.members
        self._reservations = planner.reservations
        calendar = planner.reservations.calendar
        WindowNodes(calendar, cluster=state.cluster, policies=state.policies)
        state.forecasts.copier.window_nodes = calendar.nodes_of
        self.notices = WindowNotices(
            windows=lambda: state.policies.policy.queues.maintenance,
            concerned=self._concerned,
            pods=state.pods,
            events=PodEvents(state.events),
            clock=state.clock,
        )
        state.policies.on_change.append(self.notices.note_change)
        self.routes = CalendarRoutes(
            calendar,
            concerned=self._concerned,
            promises=promises,
            pods=state.pods,
            knows_node=lambda name: name in state.cluster.nodes,
            now=lambda: state.clock.now().timestamp(),
        )

    def _concerned(self, window: MaintenanceWindow) -> list[ConcernedGang]:
        return find_concerned(window, members=self._members, reservations=self._reservations)
