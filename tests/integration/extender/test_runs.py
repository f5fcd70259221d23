"""`/v1/runs`, `/v1/usage`, `/v1/predictions`: what ran, for whom, and what callers may ask."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from extender.history.prediction_routes import PredictionRoutes
from extender.history.run_routes import RunRoutes
from extender.history.turns import HistoryTurns
from extender.inspection.access import OWN_ONLY
from service.health import Health
from service.http import Handler, build_app
from service.metrics import ServiceMetrics
from state.history.facts import Certainty, GangFacts
from state.log.log import DecisionLog
from state.log.records import DecisionRecord, RowKind
from tests.support.twins.history import MemoryHistory
from tests.support.twins.log import MemoryDecisions

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_HOUR = timedelta(hours=1)
_ENDED = GangFacts(
    run="r1",
    gang="lab/bert",
    user_name="alice",
    group_name="vision",
    vc="lab",
    requested_class="prod",
    granted_class="test",
    leaf_type="A100",
    leaf_count=8,
    member_count=1,
    workload="Job/bert",
    workload_uid="u1",
    labels={"team": "x"},
    image="train:1",
    estimate_seconds=3600,
    asked_at=_NOON - _HOUR,
    admitted_at=_NOON - _HOUR,
    released_at=_NOON,
    held_from=_NOON,
    started_at=_NOON,
    running_at=_NOON,
    ended_at=_NOON + 2 * _HOUR,
    outcome="preempted",
    reason="for another",
    preempted_for="lab/gpt",
    nodes=("n1",),
    restarts=0,
    certainty=Certainty.KNOWN,
    stamp="1",
    members={
        "p1": {
            "certainty": Certainty.KNOWN,
            "stamp": "1",
            "name": "bert-0",
            "leafCells": 8,
            "created": (_NOON - _HOUR).isoformat(),
            "bound": _NOON.isoformat(),
            "ended": (_NOON + 2 * _HOUR).isoformat(),
            "how": "preempted",
        }
    },
)


class Asked:
    """A client that may read all runs, or only those of `own`."""

    def __init__(self) -> None:
        self.history = MemoryHistory()
        self.decisions = MemoryDecisions()
        self.own: str | None = None
        self.http: TestClient[web.Request, web.Application]

    async def get(self, path: str, *, status: int = 200) -> Any:
        answer = await self.http.get(path)
        assert answer.status == status, await answer.text()
        is_json = answer.content_type == "application/json"
        return await answer.json() if is_json else await answer.text()


@pytest.fixture
async def asked() -> AsyncIterator[Asked]:
    client = Asked()

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if client.own is not None:
            request[OWN_ONLY] = client.own
        return await handler(request)

    app = build_app(health=Health([]), metrics=ServiceMetrics(), max_body_bytes=1000, guard=guard)
    turns = HistoryTurns(client.history)
    log = DecisionLog(client.decisions)
    RunRoutes(turns, log=log, utc_now=lambda: _NOON + 24 * _HOUR).add_to(app)
    PredictionRoutes(turns, utc_now=lambda: _NOON + 24 * _HOUR).add_to(app)
    for facts in (
        _ENDED,
        replace(
            _ENDED,
            run="r2",
            gang="lab/=gpt",
            user_name="bob",
            asked_at=_NOON,
            started_at=None,
            held_from=None,
            ended_at=None,
            outcome=None,
            members={},
            workload_uid="u2",
        ),
    ):
        client.history.runs.record(facts)
    async with TestClient(TestServer(app)) as client.http:
        yield client


async def test_a_run_that_a_user_cancelled_says_who_and_why(asked: Asked) -> None:
    cancel = DecisionRecord(
        at=_NOON + _HOUR,
        service="webhook",
        kind=RowKind.CANCEL,
        subject="lab/bert",
        outcome="cancelled",
        reason="its owner alice cancelled it: wrong data",
        latency_seconds=0.0,
        details={"user": "alice", "why": "wrong data", "workloadUid": "u1"},
    )
    other = replace(cancel, key=uuid4(), details={"user": "bob", "workloadUid": "u7"})
    await asked.decisions.insert(
        [cancel, other, replace(cancel, key=uuid4(), at=_NOON - 9 * _HOUR)]
    )
    deleted = replace(_ENDED, outcome="deleted", preempted_for=None, reason=None, members={})
    for uid in ("u1", "u2"):
        asked.history.runs.record(replace(deleted, run=f"d{uid}", workload_uid=uid))
    runs = (await asked.get("/v1/runs?outcome=deleted"))["items"]
    assert {run["workloadUid"]: (run.get("cancelledBy"), run.get("reason")) for run in runs} == {
        "u1": ("alice", "its owner alice cancelled it: wrong data"),
        "u2": (None, None),
    }
    asked.decisions.is_away = True
    runs = (await asked.get("/v1/runs?outcome=deleted"))["items"]
    assert all("cancelledBy" not in run for run in runs)


async def test_a_run_says_all_that_is_known_of_it(asked: Asked) -> None:
    [run] = (await asked.get("/v1/runs?user=alice&members=true"))["items"]
    [member] = run.pop("members")
    assert run == {
        "run": "r1",
        "gang": "lab/bert",
        "attempt": 1,
        "workload": "Job/bert",
        "workloadUid": "u1",
        "user": "alice",
        "group": "vision",
        "vc": "lab",
        "requestedClass": "prod",
        "grantedClass": "test",
        "leafType": "A100",
        "leafCells": 8,
        "memberCount": 1,
        "labels": {"team": "x"},
        "image": "train:1",
        "expectedSeconds": 3600,
        "submitted": "2026-03-01T11:00:00Z",
        "admitted": "2026-03-01T11:00:00Z",
        "released": "2026-03-01T12:00:00Z",
        "bound": "2026-03-01T12:00:00Z",
        "started": "2026-03-01T12:00:00Z",
        "ended": "2026-03-01T14:00:00Z",
        "outcome": "preempted",
        "reason": "for another",
        "preemptedFor": "lab/gpt",
        "restarts": 0,
        "nodes": ["n1"],
        "leafCellHours": 16.0,
    }
    assert member == {
        "name": "bert-0",
        "uid": "p1",
        "leafCells": 8,
        "created": "2026-03-01T11:00:00Z",
        "bound": "2026-03-01T12:00:00Z",
        "ended": "2026-03-01T14:00:00Z",
        "outcome": "preempted",
    }


async def test_runs_are_read_page_by_page(asked: Asked) -> None:
    page = await asked.get("/v1/runs?limit=1")
    assert [run["run"] for run in page["items"]] == ["r2"]
    page = await asked.get(f"/v1/runs?limit=1&after={page['next']}")
    assert [run["run"] for run in page["items"]] == ["r1"]
    assert "next" not in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("gang=lab/bert", ["r1"]),
        ("state=open", ["r2"]),
        ("state=ended", ["r1"]),
        ("outcome=preempted", ["r1"]),
        ("since=2026-03-02", ["r2"]),
        ("until=2026-03-01T12:00:00Z", ["r1"]),
        ("until=2026-03-01T13:00:00+01:00", ["r1"]),
        ("group=other", []),
    ],
)
async def test_runs_are_filtered(asked: Asked, query: str, found: list[str]) -> None:
    assert [run["run"] for run in (await asked.get(f"/v1/runs?{query}"))["items"]] == found


async def test_usage_is_summed_by_what_is_asked_for(asked: Asked) -> None:
    usage = await asked.get(
        "/v1/usage?since=2026-03-01T13:00:00Z&until=2026-03-02&by=user,leafType"
    )
    assert usage == {
        "since": "2026-03-01T13:00:00Z",
        "until": "2026-03-02T00:00:00Z",
        "by": ["user", "leafType"],
        "items": [{"user": "alice", "leafType": "A100", "leafCellHours": 8.0, "gangs": 1}],
    }
    assert (await asked.get("/v1/usage"))["by"] == ["user"]


async def test_usage_as_csv_has_no_formulas(asked: Asked) -> None:
    asked.history.runs.record(replace(_ENDED, run="r3", user_name="=1+1", members={}))
    text = await asked.get("/v1/usage?since=2026-03-01&format=csv&by=user,group")
    assert text.splitlines() == [
        "user,group,leafCellHours,gangs",
        "'=1+1,vision,16.0,1",
        "alice,vision,16.0,1",
    ]


@pytest.mark.parametrize(
    ("path", "parameter"),
    [
        ("/v1/usage?by=team", "by"),
        ("/v1/usage?since=yesterday", "since"),
        ("/v1/usage?until=2026-13-01", "until"),
        ("/v1/usage?until=0001-01-01", "until"),
        ("/v1/runs?since=9999-12-31T23:59:59-01:00", "since"),
        ("/v1/usage?since=2026-03-02&until=2026-03-01", "since"),
        ("/v1/usage?since=1990-01-01", "since"),
        ("/v1/usage?format=xml", "format"),
        ("/v1/usage?bye=user", "bye"),
        ("/v1/runs?outcome=lost", "outcome"),
        ("/v1/runs?state=x", "state"),
        ("/v1/runs?limit=0", "limit"),
        ("/v1/runs?after=x", "after"),
        ("/v1/runs?members=yes", "members"),
    ],
)
async def test_a_parameter_that_is_not_valid_is_named(
    asked: Asked, path: str, parameter: str
) -> None:
    assert f"{parameter}: " in str(await asked.get(path, status=400))


async def test_a_user_without_more_rights_reads_only_the_own_runs(asked: Asked) -> None:
    asked.own = "bob"
    assert [run["run"] for run in (await asked.get("/v1/runs"))["items"]] == ["r2"]
    assert (await asked.get("/v1/usage?since=2026-03-01"))["items"] == []
    assert "only the own runs" in str(await asked.get("/v1/runs?user=alice", status=403))


async def test_usage_of_one_user_or_group_reads_nothing_else(asked: Asked) -> None:
    asked.history.runs.record(replace(_ENDED, run="r3", user_name="carol", members={}))
    asked.history.runs.record(
        replace(_ENDED, run="r4", user_name="dave", group_name="nlp", members={})
    )
    read: list[Any] = []
    hours_between = asked.history.hours_between

    async def noted(*span: Any, **whose: Any) -> Any:
        found = await hours_between(*span, **whose)
        read.extend((one.user_name, one.group_name) for one in found)
        return found

    asked.history.hours_between = noted  # type: ignore[method-assign]
    await asked.get("/v1/usage?since=2026-03-01&user=carol")
    await asked.get("/v1/usage?since=2026-03-01&group=nlp")
    asked.own = "alice"
    await asked.get("/v1/usage?since=2026-03-01")
    assert read == [("carol", "vision"), ("dave", "nlp"), ("alice", "vision")]
    assert "only the own runs" in str(await asked.get("/v1/usage?user=carol", status=403))


async def test_few_questions_are_read_at_once_and_too_many_are_refused(asked: Asked) -> None:
    answer, reading, most = asyncio.Event(), 0, 0

    async def read(*_: Any, **__: Any) -> list[Any]:
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        await answer.wait()
        reading -= 1
        return []

    asked.history.hours_between = asked.history.find = read  # type: ignore[method-assign]
    async with asyncio.TaskGroup() as questions:
        asked.own = "bob"
        refused = [questions.create_task(asked.http.get("/v1/usage")) for _ in range(6)]
        while sum(one.done() for one in refused) < 2:
            await asyncio.sleep(0.01)
        asked.own = None
        others = [questions.create_task(asked.http.get("/v1/runs")) for _ in range(30)]
        while not any(one.done() for one in others):
            await asyncio.sleep(0.01)
        answer.set()
    assert sorted(one.result().status for one in refused) == [200] * 4 + [429] * 2
    assert sorted(one.result().status for one in others) == [200] * 28 + [429] * 2
    assert most == 2
    assert (await asked.get("/v1/usage"))["items"] == []


async def test_an_unavailable_history_is_an_error_not_an_empty_answer(asked: Asked) -> None:
    asked.history.is_away = True
    for path in ("/v1/runs", "/v1/usage", "/v1/predictions"):
        await asked.get(path, status=503)


async def test_a_predicted_start_is_told_from_a_time_like_all_others(asked: Asked) -> None:
    start = {"key": "below 30 min", "size": 8, "median": 60.0, "low": 1.0, "high": 90.0}
    told = {"start": {"stamp": "1", "at": 1_800_000_000.5, **start}}
    asked.history.runs.record(
        replace(_ENDED, run="r4", members={}, outcome="failed", predictions=told)
    )
    (run,) = (await asked.get("/v1/runs?outcome=failed"))["items"]
    assert run["predictions"] == {"start": {"at": "2027-01-15T08:00:00Z", **start}}


async def test_predictions_tell_their_error_by_key_and_size(asked: Asked) -> None:
    told = {"key": "VC", "size": 8, "median": 3600.0, "low": 60.0, "high": 9000.0, "runs": 7}
    done = replace(_ENDED, run="r3", members={}, outcome="succeeded")
    asked.history.runs.record(replace(done, predictions={"runTime": {"stamp": "1", **told}}))
    answer = await asked.get("/v1/predictions")
    assert answer["items"] == [
        {
            "of": "runTime",
            "by": "VC",
            "leafCellsUpTo": 8,
            "runs": 1,
            "medianErrorFactor": 2.0,
            "withinTwice": 1.0,
            "covered": 1.0,
        }
    ]
    [run] = (await asked.get("/v1/runs?outcome=succeeded"))["items"]
    assert run["predictions"] == {"runTime": told}
    assert "is no parameter" in str(await asked.get("/v1/predictions?x=1", status=400))
    asked.own = "bob"
    assert (await asked.get("/v1/predictions"))["items"] == []
