"""`/v1/limits`: what a user holds now, compared with every limit that concerns the user.

The limits are those of the user's quota groups: each group's own, and the user's within it. Rules
have no limits of this kind; they look at what the user holds in all groups together.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from aiohttp import web

from extender.inspection.json_views import JsonObject, if_any
from policy.errors import BackendError, RequestError
from policy.policy import Policy
from policy.quotas.admission import describe_use
from policy.quotas.limits import Limit, Measure, Scope
from policy.quotas.quota_table import QuotaGroup
from policy.quotas.usage import MICROS_PER_HOUR, ScopeUsage
from policy.submission import UserName
from service.http import json_answer
from state.ledger.ledger import Ledger

_HELD: Final = {
    "leafCells": Measure.LEAF_CELLS,
    "leafCellsHigh": Measure.LEAF_CELLS_HIGH,
    "leafCellsLow": Measure.LEAF_CELLS_LOW,
    "gangs": Measure.GANGS,
    "cpuMillis": Measure.CPU_MILLIS,
    "memoryBytes": Measure.MEMORY_BYTES,
}


class LimitRoutes:
    """Serves usage and limits; changes nothing."""

    def __init__(self, ledger: Ledger | None, policy: Callable[[], Policy]) -> None:
        self._ledger = ledger
        self._policy = policy

    def add_to(self, app: web.Application) -> None:
        """Register the route."""
        app.router.add_get("/v1/limits", self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        return json_answer(await self.show(request.query))

    async def show(self, query: Mapping[str, str]) -> JsonObject:
        """Show the limits of the user that a request names.

        Raises RequestError if it names none, and BackendError if usage cannot be read.
        """
        if not query.get("user"):
            raise RequestError.at("user", "must name a user, such as ?user=alice")
        if self._ledger is None:
            raise BackendError("this extender has no ledger")
        user, policy = UserName(query["user"]), self._policy()
        told = [name for name in query.get("groups", "").split(",") if name]
        groups = policy.identity.groups_of(user, told)
        own = [group for group in policy.quotas.groups if group.has(user, groups)]
        usage = await self._read_usage(user, own)
        return {
            "user": user,
            "groups": list(groups),
            "held": {key: usage[Scope(user)].used(measure) for key, measure in _HELD.items()},
            "limits": [
                _show_limit(limit, group, usage[limit.scope]) for group, limit in _limits(user, own)
            ],
        }

    async def _read_usage(
        self, user: UserName, groups: list[QuotaGroup]
    ) -> Mapping[Scope, ScopeUsage]:
        assert self._ledger is not None
        limits = (limit for _, limit in _limits(user, groups))
        scopes = dict.fromkeys([Scope(user), *(limit.scope for limit in limits)])
        try:
            found = await asyncio.gather(*map(self._ledger.usage, scopes))
        except ValueError as exc:
            raise RequestError.at("user", str(exc)) from exc
        return dict(zip(scopes, found, strict=True))


def _limits(user: UserName, groups: list[QuotaGroup]) -> Iterator[tuple[QuotaGroup, Limit]]:
    for group in groups:
        for limit in group.limits(user):
            yield group, limit


def _show_limit(limit: Limit, group: QuotaGroup, usage: ScopeUsage) -> JsonObject:
    used: float = usage.used(limit.measure, limit.leaf_type)
    if limit.measure.is_hours:
        used = round(used / MICROS_PER_HOUR, 3)
    return {
        "group": group.name,
        **if_any("user", limit.scope.user),
        "measure": limit.measure,
        **if_any("leafType", limit.leaf_type),
        "used": used,
        "most": limit.most,
        "over": group.over,
        "text": describe_use(limit, used),
    }
