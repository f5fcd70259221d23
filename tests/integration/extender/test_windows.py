"""`/v1/windows`: what can start now, and what callers may see."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from extender.inspection.access import OWN_ONLY
from extender.inspection.queue.window_routes import WindowRoutes
from extender.queue.variants.start_windows import WindowSearch
from extender.simulate.open_vcs import OpenVcs
from extender.simulate.start_windows import StartWindows
from policy.identity.identity import Identity, VcAccess
from policy.store import build_policy
from policy.submission import UserName, VcName
from service.health import Health
from service.http import Handler, build_app
from service.metrics import ServiceMetrics
from tests.support.extender.gang_pods import member
from tests.support.extender.planning import Planning
from tests.support.policy.cluster_texts import hived_text


class Caller:
    """A client of windows; with a name it may read those of open VCs."""

    http: TestClient[web.Request, web.Application]
    name: str | None = None
    plans: Planning

    async def get(self, query: str = "", *, status: int = 200) -> Any:
        answer = await self.http.get(f"/v1/windows{query}")
        assert answer.status == status, await answer.text()
        found = await answer.json()
        return found if status == 200 else found["error"]


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    caller, plans = Caller(), Planning()
    caller.plans = plans
    plans.shell.cluster.use_document(hived_text(lab=3, closed=1))
    plans.add_nodes()
    cluster, planner = plans.shell.cluster, plans.planner
    search = WindowSearch(
        planner._gangs._cells,
        planner._needs.nodes,
        planner.reservations.gaps,
        prepare=cluster.prepare_stepwise,
    )
    windows = StartWindows(
        search, cluster=cluster, now=lambda: 0.0, monotonic=plans.shell.clock.monotonic
    )
    identity = Identity(vcs={VcName("closed"): VcAccess(users=(UserName("bob"),))})
    policy = replace(build_policy(()), identity=identity)
    open_vcs = OpenVcs(policy=lambda: policy, topology=lambda: cluster.topology, ledger=None)

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if caller.name is not None:
            request[OWN_ONLY] = caller.name
        return await handler(request)

    app = build_app(health=Health([]), metrics=ServiceMetrics(), max_body_bytes=1000, guard=guard)
    WindowRoutes(windows, open_vcs).add_to(app)
    async with TestClient(TestServer(app)) as caller.http:
        yield caller


async def test_windows_of_each_vc_are_listed(caller: Caller) -> None:
    found = await caller.get()
    assert [(one["vc"], one["leafType"]) for one in found["items"]] == [
        ("closed", "A100"),
        ("lab", "A100"),
    ]
    lab = found["items"][1]
    assert lab["guaranteed"]["largest"] == {
        "members": 3,
        "leafCellsPerMember": 8,
        "leafCells": 24,
        "explanation": "3 members with 8 leaf cells each can start now, without a time limit",
    }
    assert lab["guaranteed"]["largestOnOneNode"]["leafCellsPerMember"] == 8
    assert lab["opportunistic"]["largest"]["leafCells"] == 32
    assert [one["members"] for one in lab["guaranteed"]["shapes"]] == [24, 12, 6, 3]


async def test_a_change_of_the_cluster_changes_windows_at_once(caller: Caller) -> None:
    first = await caller.get("?vc=lab&leafType=A100")
    assert await caller.get("?vc=lab&leafType=A100") == first
    pod = member("a-0", gang="a", size=1).bound_to("node-00")
    caller.plans.pods.upsert(pod)
    (lab,) = (await caller.get("?vc=lab&leafType=A100"))["items"]
    assert lab["opportunistic"]["largest"]["leafCells"] < 32


async def test_a_user_sees_the_vcs_that_are_open_to_the_user(caller: Caller) -> None:
    caller.name = "alice"
    assert [one["vc"] for one in (await caller.get())["items"]] == ["lab"]
    refusal = await caller.get("?vc=closed", status=404)
    assert refusal.endswith('is not open to "alice"; VCs open to you: lab')
    caller.name = "bob"
    assert [one["vc"] for one in (await caller.get())["items"]] == ["closed", "lab"]


async def test_pages_are_followed(caller: Caller) -> None:
    first = await caller.get("?limit=1")
    second = await caller.get(f"?limit=1&after={first['next']}")
    assert [one["vc"] for one in (*first["items"], *second["items"])] == ["closed", "lab"]


@pytest.mark.parametrize(
    ("query", "status", "why"),
    [
        ("?vcs=lab", 400, "unknown parameter"),
        ("?vc=lost", 404, 'VC "lost" does not exist'),
        ("?leafType=H100", 404, 'there is no leaf type "H100"; leaf types are A100'),
        ("?limit=0", 400, "must be a whole number"),
    ],
)
async def test_bad_parameters_are_told(caller: Caller, query: str, status: int, why: str) -> None:
    assert why in await caller.get(query, status=status)
