"""`/v1/…`: what people ask about nodes, gangs and decisions."""

import re
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from extender.cells.model import GangView, Placement
from extender.cluster import Cluster
from extender.snapshots import Snapshots
from service.health import Health
from service.http import json_answer
from state.log import DecisionLog, DecisionRecord

_MOST_DECISIONS = 1000
_LIMIT = re.compile("[0-9]{1,4}")


class InspectionRoutes:
    """`/v1/…`: what people ask."""

    def __init__(
        self, *, cluster: Cluster, snapshots: Snapshots, log: DecisionLog, health: Health
    ) -> None:
        self._cluster = cluster
        self._snapshots = snapshots
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
                for cell, holders in self._cluster.engine.nodes()
            ]
        )

    async def _gangs(self, _: web.Request) -> web.Response:
        return json_answer([_show_gang(gang) for gang in self._snapshots.gangs().values()])

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
