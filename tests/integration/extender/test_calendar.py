"""`/v1/calendar`: windows and reservations in advance, and what callers may see of them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from extender.inspection.access import OWN, OWN_ONLY
from extender.inspection.queue.calendar_routes import CalendarRoutes
from extender.outcomes.pod_events import PodEvents
from extender.planning.promise_keeper import PromiseKeeper
from service.health import Health
from service.http import Handler, build_app
from service.metrics import ServiceMetrics
from tests.support.extender.window_world import DOCUMENT, WindowWorld
from tests.support.state.charges import TERM

_ENTRY = """reservations:
- {name: nightly, vc: a, leafCells: 4, who: {users: [ann]},
   from: "1970-01-01T02:00:00Z", until: "1970-01-01T03:00:00Z"}
maintenance:
"""


class Caller:
    """A client of the calendar; with a name it may read only the own gangs."""

    http: TestClient[web.Request, web.Application]
    world: WindowWorld
    name: str | None = None

    async def get(self, query: str = "", *, status: int = 200) -> Any:
        answer = await self.http.get(f"/v1/calendar{query}")
        assert answer.status == status, await answer.text()
        return await answer.json() if status == 200 else await answer.text()


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    caller, world = Caller(), WindowWorld()
    caller.world = world
    world.apply(DOCUMENT.replace("maintenance:\n", _ENTRY))
    world.planner.now = 0.0
    world.planner.work()

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if caller.name is not None:
            request[OWN_ONLY] = caller.name
        return await handler(request)

    shell = world.shell
    promises = PromiseKeeper(
        reservations=world.reservations,
        pods=shell.pods,
        events=PodEvents(shell.events),  # type: ignore[arg-type] # all that it uses
        metrics=shell.metrics,
        term=lambda: TERM,
        clock=shell.clock,
    )
    app = build_app(health=Health([]), metrics=ServiceMetrics(), max_body_bytes=1000, guard=guard)
    CalendarRoutes(
        world.reservations.calendar,
        concerned=world.concerned,
        promises=promises,
        pods=shell.pods,
        knows_node=lambda name: name in shell.cluster.nodes,
        now=lambda: world.seconds,
    ).add_to(app)
    async with TestClient(TestServer(app)) as caller.http:
        yield caller


async def test_windows_are_listed_with_the_gangs_that_they_concern(caller: Caller) -> None:
    caller.world.expect(7200 + 60)
    (window,) = (await caller.get())["maintenance"]
    assert window == {
        "name": "firmware",
        "reason": "new firmware",
        "from": "1970-01-01T02:00:00Z",
        "until": "1970-01-01T03:00:00Z",
        "state": "coming",
        "nodes": ["node-00"],
        "unknownNodes": ["gone"],
        "gangs": [
            {
                "gang": "lab/bert",
                "nodes": ["node-00"],
                "expectedEnd": "1970-01-01T02:01:00Z",
                "endsInTime": False,
            }
        ],
        "otherGangs": 0,
    }
    caller.world.at(7200)
    assert (await caller.get())["maintenance"][0]["state"] == "in-force"
    caller.world.at(10800)
    assert (await caller.get())["maintenance"][0]["state"] == "over"


async def test_reservations_in_advance_are_listed_with_their_cells(caller: Caller) -> None:
    (entry,) = (await caller.get())["reservations"]
    assert (entry["vc"], entry["members"], entry["leafCells"]) == ("a", 1, 4)
    assert entry["reservation"]["deadline"] == "1970-01-01T02:00:00Z"
    assert "for the advance reservation nightly" in entry["reservation"]["explanation"][0]


async def test_callers_see_the_names_of_their_own_gangs_only(caller: Caller) -> None:
    assert "/v1/calendar" in OWN
    caller.name = "stranger"
    (window,) = (await caller.get())["maintenance"]
    assert (window["gangs"], window["otherGangs"]) == ([], 1)
    caller.name = caller.world.shell.pod("bert-0").charged_user
    (window,) = (await caller.get())["maintenance"]
    assert window["otherGangs"] == 0


async def test_unknown_parameters_are_refused(caller: Caller) -> None:
    assert "unknown parameter" in await caller.get("?vc=a", status=400)
