"""The extender over HTTP: kube-scheduler's verbs, and what people ask.

Filter and bind report every expected failure as a 200 with `Error`, since kube-scheduler throws the
body of any other status away; prioritize and preempt have no such field and answer 4xx or 5xx.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from extender import wire
from extender.cells.engine import Engine
from extender.cells.model import GangView, Placement
from extender.service import ExtenderService
from policy.errors import RequestError
from service.bodies import parse_body
from service.health import Health
from service.http import json_answer
from state.log import DecisionLog, DecisionRecord

_MOST_DECISIONS = 1000
_LIMIT = re.compile("[0-9]{1,4}")

Verb = Callable[[bytes], Awaitable[object]]


class VerbRoutes:
    """`/v1/extender/…`: what kube-scheduler calls."""

    def __init__(self, service: ExtenderService, health: Health) -> None:
        self._service = service
        self._health = health

    def add_to(self, app: web.Application) -> None:
        """Register the routes."""
        for name, verb, has_error in (
            ("filter", self._filter, True),
            ("prioritize", self._prioritize, False),
            ("preempt", self._preempt, False),
            ("bind", self._bind, True),
        ):
            app.router.add_post(f"/v1/extender/{name}", self._handler(verb, has_error=has_error))

    def _handler(
        self, verb: Verb, *, has_error: bool
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            if not self._health.can_answer:
                reasons = "; ".join(self._health.reasons())
                return _failure(f"extender is not ready: {reasons}", 503, has_error=has_error)
            try:
                return json_answer(await verb(await request.read()))
            except RequestError as exc:
                return _failure(str(exc), 400, has_error=has_error)

        return handle

    async def _filter(self, body: bytes) -> object:
        return self._service.filter(parse_body(wire.FilterArguments, body))

    async def _prioritize(self, body: bytes) -> object:
        return self._service.prioritize(parse_body(wire.FilterArguments, body))

    async def _preempt(self, body: bytes) -> object:
        return self._service.preempt(parse_body(wire.PreemptArguments, body))

    async def _bind(self, body: bytes) -> object:
        return await self._service.bind(parse_body(wire.BindArguments, body))


def _failure(message: str, status: int, *, has_error: bool) -> web.Response:
    if has_error:
        return json_answer(wire.error_answer(message))
    return json_answer({"error": message}, status=status)


class InspectionRoutes:
    """`/v1/…`: what people ask."""

    def __init__(self, *, engine: Engine, log: DecisionLog, health: Health) -> None:
        self._engine = engine
        self._log = log
        self._health = health

    def add_to(self, app: web.Application) -> None:
        """Register the routes."""
        app.router.add_get("/", self._index)
        app.router.add_get("/leader", self._leader)
        app.router.add_get("/v1/nodes", self._nodes)
        app.router.add_get("/v1/gangs", self._gangs)
        app.router.add_get("/v1/decisions", self._decisions)

    async def _index(self, request: web.Request) -> web.Response:
        paths = sorted(
            resource.canonical for resource in request.app.router.resources() if resource.canonical
        )
        return json_answer({"service": "cellgate extender", "paths": paths})

    async def _leader(self, _: web.Request) -> web.Response:
        """There is one replica until leadership comes: it leads as soon as it is ready."""
        if self._health.is_ready:
            return web.Response(text="ok\n")
        return web.Response(text="\n".join(self._health.reasons()) + "\n", status=503)

    async def _nodes(self, _: web.Request) -> web.Response:
        return json_answer(
            [
                {
                    "name": cell.name,
                    "leafType": cell.leaf_type,
                    "leafCount": cell.leaf_count,
                    "healthy": cell.is_healthy,
                    "holders": {str(leaf): member for leaf, member in holders.items()},
                }
                for cell, holders in self._engine.nodes()
            ]
        )

    async def _gangs(self, _: web.Request) -> web.Response:
        return json_answer([_show_gang(gang) for gang in self._engine.gangs()])

    async def _decisions(self, request: web.Request) -> web.Response:
        limit = _read_limit(request.query)
        records = await self._log.recent(limit, subject=request.query.get("subject"))
        return json_answer([_show_record(record) for record in records])


def _read_limit(query: Mapping[str, str]) -> int:
    text = query.get("limit", "100")
    if not (_LIMIT.fullmatch(text) and 1 <= int(text) <= _MOST_DECISIONS):
        raise web.HTTPBadRequest(text=f"limit: must be a whole number from 1 to {_MOST_DECISIONS}")
    return int(text)


def _show_record(record: DecisionRecord) -> dict[str, Any]:
    return {
        "at": record.at.isoformat(timespec="milliseconds"),
        "service": record.service,
        "kind": record.kind,
        "subject": record.subject,
        "podUid": record.pod_uid,
        "outcome": record.outcome,
        "reason": record.reason,
        "policyVersion": record.policy_version,
        "latencySeconds": record.latency_seconds,
        "details": record.details,
    }


def _show_gang(gang: GangView) -> dict[str, Any]:
    return {
        "gang": str(gang.gang),
        "size": gang.size,
        "vc": gang.vc,
        "priority": gang.priority,
        "state": gang.state,
        "guaranteed": gang.is_guaranteed,
        "members": [
            {"uid": uid, "bound": uid in gang.bound, **_show_placement(placement)}
            for uid, placement in gang.members.items()
        ],
        "held": [_show_placement(placement) for placement in gang.held],
    }


def _show_placement(placement: Placement) -> dict[str, Any]:
    return {"node": placement.node, "leafCells": list(placement.leaf_cells)}
