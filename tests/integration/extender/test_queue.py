"""`/v1/queue`: the order of waiting gangs, what it adds up from, and what callers may see."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from extender.inspection.access import OWN_ONLY
from extender.inspection.queue.queue_routes import QueueRoutes
from policy.queues.queues import DEFAULT_QUEUES
from policy.submission import GangKey
from service.health import Health
from service.http import Handler, build_app
from service.metrics import ServiceMetrics
from tests.support.extender.gang_pods import member
from tests.support.extender.shell import Shell
from tests.support.extender.waiting import a_waiting_view

A, B = GangKey("lab", "a"), GangKey("lab", "b")


class Caller:
    """A client of the queue; with a name it may read only the own gangs."""

    http: TestClient[web.Request, web.Application]
    name: str | None = None

    async def get(self, query: str = "", *, status: int = 200) -> Any:
        answer = await self.http.get(f"/v1/queue{query}")
        assert answer.status == status, await answer.text()
        return await answer.json() if status == 200 else await answer.text()


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    shell, caller = Shell(), Caller()
    shell.recover()
    for name, user, second in (("a", "alice", 0), ("b", "bob", 9)):
        pod = member(f"{name}-0", gang=name, size=1).gated().submitted_by(user)
        shell.pods.upsert(pod.created_at(f"2026-01-01T00:00:0{second}Z"))

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if caller.name is not None:
            request[OWN_ONLY] = caller.name
        return await handler(request)

    app = build_app(health=Health([]), metrics=ServiceMetrics(), max_body_bytes=1000, guard=guard)
    view = a_waiting_view(shell, cells=[A, B])
    QueueRoutes(view, queues=lambda: DEFAULT_QUEUES).add_to(app)
    async with TestClient(TestServer(app)) as caller.http:
        yield caller


async def test_gangs_are_listed_in_their_order_with_what_their_rank_adds_up_from(
    caller: Caller,
) -> None:
    found = await caller.get()
    assert [one["name"] for one in found["levels"]] == ["default"]
    assert found["levels"][0]["horizonSeconds"] == 7 * 86_400
    assert [one["gang"] for one in found["items"]] == ["lab/a", "lab/b"]
    last = found["items"][1]
    assert (last["place"], last["of"], last["levelPlace"], last["poolPlace"]) == (2, 2, 2, 2)
    assert last["creditSeconds"] == sum(part["seconds"] for part in last["parts"])
    assert last["ahead"] == {"gang": "lab/a", "level": "default", "bySeconds": 9}
    assert last["explanation"][-1] == "lab/a is ahead by 9 s"
    assert last["bound"][0] == "gangs that ask more than 168 h later are never ahead of it"


async def test_pages_follow_the_order(caller: Caller) -> None:
    first = await caller.get("?limit=1")
    second = await caller.get(f"?limit=1&after={first['next']}")
    shown = [first["items"][0]["gang"], second["items"][0]["gang"]]
    assert (shown, "next" in second) == (["lab/a", "lab/b"], False)


@pytest.mark.parametrize(
    ("query", "gangs"),
    [
        ("?user=bob", ["lab/b"]),
        ("?vc=other", []),
        ("?level=default&queue=cells", ["lab/a", "lab/b"]),
    ],
)
async def test_gangs_are_chosen_by_query(caller: Caller, query: str, gangs: list[str]) -> None:
    assert [one["gang"] for one in (await caller.get(query))["items"]] == gangs


async def test_a_user_sees_the_own_gangs_and_no_name_of_others(caller: Caller) -> None:
    caller.name = "bob"
    (own,) = (await caller.get())["items"]
    assert (own["gang"], own["place"], own["of"]) == ("lab/b", 2, 2)
    assert own["ahead"] == {"level": "default", "bySeconds": 9}
    assert own["explanation"][-1] == "a gang of another user is ahead by 9 s"
    assert "may read only the own gangs" in await caller.get("?user=alice", status=403)


async def test_unknown_parameters_are_refused(caller: Caller) -> None:
    assert "unknown parameter" in await caller.get("?vcs=lab", status=400)
