"""`/v1/limits`: what a user holds now, compared with every limit that concerns the user.

The limits are those of the user's quota groups: each group's own, and the user's within it. Rules
have no limits of this kind; they look at what the user holds in all groups together.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from aiohttp import web

from extender.inspection.access import CALLER, OWN_ONLY
from extender.inspection.json_views import JsonObject, if_any
from kube.api.token_reviews import ApiUser
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
_MEASURES: Final = {
    **{measure: name for name, measure in _HELD.items()},
    Measure.LEAF_CELLS_OF_TYPE: "leafCells",
    Measure.HOURS_DAY: "leafCellHours.day",
    Measure.HOURS_WEEK: "leafCellHours.week",
    Measure.HOURS_MONTH: "leafCellHours.month",
    Measure.HOURS_TOTAL: "leafCellHours.total",
}
"""The names of limits, as in the Quotas document where the units are the same."""


class LimitRoutes:
    """Serves usage and limits; changes nothing."""

    def __init__(self, ledger: Ledger | None, policy: Callable[[], Policy]) -> None:
        self._ledger = ledger
        self._policy = policy

    def add_to(self, app: web.Application) -> None:
        """Register the route."""
        app.router.add_get("/v1/limits", self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        own, caller = request.get(OWN_ONLY), request.get(CALLER)
        if own is not None and ("groups" in request.query or request.query.get("user", own) != own):
            why = f"{own} may read only their own limits; leave user and groups out"
            raise web.HTTPForbidden(text=why)
        return json_answer(await self.show(request.query, caller=caller))

    async def show(self, query: Mapping[str, str], *, caller: ApiUser | None = None) -> JsonObject:
        """Show the limits of the user that a request names, or else of its caller.

        Raises RequestError if neither is known, and BackendError if usage cannot be read.
        """
        name = query.get("user") or (caller.name if caller is not None else "")
        if not name:
            raise RequestError.at("user", "must name a user, such as ?user=alice")
        if self._ledger is None:
            raise BackendError("this extender has no ledger")
        user, policy = UserName(name), self._policy()
        told = [one for one in query.get("groups", "").split(",") if one]
        if caller is not None and caller.name == name:
            told += caller.groups
        groups = policy.identity.groups_of(user, told)
        own = [group for group in policy.quotas.groups if group.has(user, groups)]
        usage = await self._read_usage(user, own)
        return {
            "user": user,
            "groups": list(dict.fromkeys([*groups, *(group.name for group in own)])),
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
        "measure": _MEASURES[limit.measure],
        **if_any("leafType", limit.leaf_type),
        "used": used,
        "most": round(limit.most) if limit.most == round(limit.most) else limit.most,
        "over": group.over,
        "text": describe_use(limit, used),
    }
