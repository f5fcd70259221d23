"""Inspection is answered by the leader only.

A standby follows pods and nodes, but it has made no decision: it knows no lease, no waiting gang
and no reason. What it could show would be wrong, so it answers `/v1/…` with a 503 that names the
leader and the Service that leads to it. Verbs have a refusal of their own, which kube-scheduler
reads.
"""

from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from extender.inspection.access import VERBS
from extender.leader_role import LeaderRole
from extender.settings import LEADERSHIP
from service.health import Health
from service.http import Handler, json_answer

LEADER_HEADER: Final = "X-Cellgate-Leader"
"""The leader's name, on a refusal; absent while no replica leads."""
_INSPECTION: Final = "/v1/"


def only_the_leader(leading: LeaderRole, health: Health) -> Middleware:
    """Return a check that passes inspection on the leader only, and every other request."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if leading.is_leading or not _is_inspection(request):
            return await handler(request)
        return _refuse(leading, health)

    return middleware


def _is_inspection(request: web.Request) -> bool:
    resource = request.match_info.route.resource
    route = resource.canonical if resource else ""
    return route.startswith(_INSPECTION) and not route.startswith(VERBS)


def _refuse(leading: LeaderRole, health: Health) -> web.Response:
    """Refuse, and close the connection, so that the next one may reach the leader."""
    answer = json_answer({"error": why_not(leading, health)}, status=503)
    if leading.holder:
        answer.headers[LEADER_HEADER] = leading.holder
    answer.force_close()
    return answer


def why_not(leading: LeaderRole, health: Health) -> str:
    """Say why this replica does not answer, and which one does."""
    if not health.can_answer:
        return f"this replica cannot answer yet: {'; '.join(health.reasons())}"
    if leading.is_taking_over:
        return "this replica has just become the leader and rebuilds its state; ask again"
    if not leading.holder:
        return (
            "this replica does not lead, and no replica holds the Lease "
            f"{LEADERSHIP}; ask again when one does"
        )
    return (
        f"this replica does not lead: {leading.holder} does, and only the leader can answer; "
        f"ask the Service {LEADERSHIP}, which selects it"
    )
