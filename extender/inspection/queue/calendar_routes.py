"""`/v1/calendar`: advance reservations and maintenance windows, and the gangs that they concern.

Every user may read the windows. A caller without the right to read the whole calendar sees the own
gangs (`access`); those of other users are counted.
"""

from collections.abc import Callable, Sequence

from aiohttp import web

from extender.cells.views.listings import Stepwise
from extender.feeds.pod_feed import PodSink
from extender.inspection.access import OWN_ONLY
from extender.inspection.json_views import JsonObject, if_any
from extender.inspection.queue.reservation_view import show_reservation
from extender.planning.maintenance.concerned_gangs import ConcernedGang
from extender.planning.maintenance.window_notices import Concerned
from extender.planning.promise_keeper import PromiseKeeper
from extender.queue.reserve.calendar import Calendar
from extender.queue.reserve.model import entry_key
from policy.errors import RequestError
from policy.queues.windows import AdvanceReservation, MaintenanceWindow
from policy.submission import NodeName
from policy.wording import moment
from service.http import json_answer
from service.tasks import in_slices


class CalendarRoutes:
    """Serves the calendar; none of its requests changes anything."""

    def __init__(
        self,
        calendar: Calendar,
        *,
        concerned: Concerned,
        promises: PromiseKeeper,
        pods: PodSink,
        knows_node: Callable[[NodeName], bool],
        now: Callable[[], float],
    ) -> None:
        self._calendar = calendar
        self._concerned = concerned
        self._promises = promises
        self._pods = pods
        self._knows_node = knows_node
        self._now = now

    def add_to(self, app: web.Application) -> None:
        """Register the route."""
        app.router.add_get("/v1/calendar", self._show)

    async def _show(self, request: web.Request) -> web.Response:
        for name in request.query:
            raise RequestError.at(name, "unknown parameter; there are none")
        viewer, queues = request.get(OWN_ONLY), self._calendar.queues
        shown = await in_slices(self._show_windows(queues.maintenance, viewer))
        entries = [self._show_entry(one, viewer) for one in queues.reservations]
        return json_answer({"reservations": entries, "maintenance": shown})

    def _show_windows(
        self, windows: Sequence[MaintenanceWindow], viewer: str | None
    ) -> Stepwise[list[JsonObject]]:
        found = []
        for one in windows:
            found.append(self._show_window(one, viewer))
            yield
        return found

    def _show_entry(self, one: AdvanceReservation, viewer: str | None) -> JsonObject:
        found = self._promises.find(entry_key(one.name))
        return {
            "name": one.name,
            "vc": one.vc,
            **if_any("leafType", one.leaf_type),
            "members": one.members,
            "leafCells": one.leaf_cells,
            **self._show_times(one),
            **show_reservation(found, viewer=viewer),
        }

    def _show_window(self, one: MaintenanceWindow, viewer: str | None) -> JsonObject:
        nodes, gangs = sorted(self._calendar.nodes_of(one)), self._concerned(one)
        shown = [gang for gang in gangs if viewer in (None, self._owner(gang))]
        return {
            "name": one.name,
            **if_any("reason", one.reason or None),
            **self._show_times(one),
            "nodes": [node for node in nodes if self._knows_node(node)],
            "unknownNodes": [node for node in nodes if not self._knows_node(node)],
            "gangs": [_show_gang(gang, one) for gang in shown],
            "otherGangs": len(gangs) - len(shown),
        }

    def _show_times(self, one: AdvanceReservation | MaintenanceWindow) -> JsonObject:
        now = self._now()
        state = "over" if now >= one.ends else "in-force" if now >= one.begins else "coming"
        times = {"from": moment(one.begins), "until": moment(one.ends)}
        return {**times, "state": state}

    def _owner(self, gang: ConcernedGang) -> str | None:
        pod = self._pods.get(gang.member)
        return pod.charged_user if pod is not None else None


def _show_gang(gang: ConcernedGang, window: MaintenanceWindow) -> JsonObject:
    end = gang.expected_end
    return {
        "gang": str(gang.gang),
        "nodes": list(gang.nodes),
        **if_any("expectedEnd", moment(end) if end is not None else None),
        "endsInTime": not gang.is_expected_at(window.begins),
    }
