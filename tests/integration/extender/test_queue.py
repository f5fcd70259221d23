"""`/v1/queue`: the order of waiting gangs, what it adds up from, and what callers may see."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from extender.cells.model import ReasonCode
from extender.cells.wording import explain
from extender.inspection.access import OWN_ONLY
from extender.inspection.queue.queue_routes import QueueRoutes
from extender.queue.variants.model import Variants
from policy.queues.queues import DEFAULT_QUEUES
from policy.submission import GangKey
from service.health import Health
from service.http import Handler, build_app
from service.metrics import ServiceMetrics
from tests.support.cells.refused_requests import held_by_its_owner
from tests.support.extender.gang_pods import member
from tests.support.extender.shell import Shell
from tests.support.extender.waiting import a_waiting_view

A, B, C = (GangKey("lab", name) for name in "abc")
HELD = held_by_its_owner()


class Caller:
    """A client of the queue; with a name it may read only the own gangs."""

    http: TestClient[web.Request, web.Application]
    shell: Shell
    name: str | None = None

    async def get(self, query: str = "", *, status: int = 200) -> Any:
        answer = await self.http.get(f"/v1/queue{query}")
        assert answer.status == status, await answer.text()
        return await answer.json() if status == 200 else await answer.text()


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    caller = Caller()
    shell = caller.shell = Shell()
    shell.recover()
    for name, user, second in (("a", "alice", 0), ("b", "bob", 9), ("c", "carol", 9)):
        pod = member(f"{name}-0", gang=name, size=1).gated().submitted_by(user)
        shell.pods.upsert(pod.created_at(f"2026-01-01T00:00:0{second}Z"))

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if caller.name is not None:
            request[OWN_ONLY] = caller.name
        return await handler(request)

    app = build_app(health=Health([]), metrics=ServiceMetrics(), max_body_bytes=1000, guard=guard)
    view = a_waiting_view(shell, cells=[A, B])

    async def find(_: GangKey) -> Variants | None:
        return Variants(at=0.0, starts_now=True)

    QueueRoutes(view, queues=lambda: DEFAULT_QUEUES, variants_of=find).add_to(app)
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


async def test_a_gang_is_told_what_would_change_it(caller: Caller) -> None:
    (own,) = (await caller.get("?gang=lab/b"))["items"]
    assert own["whatWouldChangeIt"]["explanation"] == "the gang starts as it is"
    assert all("whatWouldChangeIt" not in one for one in (await caller.get())["items"])
    caller.name = "alice"
    assert (await caller.get("?gang=lab/b"))["items"] == []


async def test_a_gang_that_cannot_start_is_told_so_in_place_of_a_start(caller: Caller) -> None:
    too_large = explain(ReasonCode.TOO_LARGE, gang="lab/a", size=9999, limit=4096)
    caller.shell.outcomes.gang_waits(A, caller.shell.pod("a-0"), too_large)
    (own,) = (await caller.get("?gang=lab/a"))["items"]
    told = "as the gang and the cluster are, it cannot start: its reason says why"
    assert own["expectedStart"] == {"unknown": told}


async def test_each_gang_has_the_reason_why_it_waits(caller: Caller) -> None:
    caller.shell.outcomes.gang_waits(A, caller.shell.pod("a-0"), HELD)
    first, second = (await caller.get())["items"]
    assert (first["code"], first["waitsFor"]) == ("held-by-user", "release")
    assert first["reason"] == HELD.text
    assert second["reason"].startswith("gang lab/b has not been planned yet")
    caller.name = "bob"
    (own,) = (await caller.get())["items"]
    assert (own["code"], own["waitsFor"], "reason" in own) == ("unplanned", "turn", False)


async def test_a_gang_that_is_not_in_the_queue_is_explained(caller: Caller) -> None:
    caller.shell.outcomes.gang_waits(C, caller.shell.pod("c-0"), HELD)
    assert (await caller.get("?gang=lab/c"))["explanation"] == [
        f"gang lab/c has no place in the queue: {HELD.text}"
    ]
    assert (await caller.get("?gang=lab/x"))["explanation"] == [
        "no gang lab/x waits: it has its places, has ended or never existed; "
        "/v1/runs?gang=lab/x shows its runs"
    ]
    for query in ("?gang=lab/a", "?gang=lab/a&vc=other", ""):
        assert "explanation" not in await caller.get(query)
    caller.name = "carol"
    assert (await caller.get("?gang=lab/c"))["explanation"] == [
        "gang lab/c has no place in the queue: it waits with code held-by-user"
    ]
    for name in ("b", "x"):
        (told,) = (await caller.get(f"?gang=lab/{name}"))["explanation"]
        assert told.startswith(f"no gang lab/{name} of yours waits: ")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?gang=b", 'gang: must be namespace/name, such as ml/bert, not \\"b\\"'),
        ("?queue=gold", "queue: must be one of cells, quota"),
        ("?level=gold", "level: must be one of default"),
    ],
)
async def test_a_value_that_no_gang_can_have_is_refused(
    caller: Caller, query: str, message: str
) -> None:
    assert message in await caller.get(query, status=400)


async def test_unknown_parameters_are_refused(caller: Caller) -> None:
    assert "unknown parameter" in await caller.get("?vcs=lab", status=400)
