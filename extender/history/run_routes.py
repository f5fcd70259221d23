"""`/v1/runs` and `/v1/usage`: what ran, for whom, for how long, and how it ended.

A caller without the right to read all runs reads the own ones (`extender.inspection.access`). Both
are answered from Postgres: while it is unavailable, they are refused.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import web

from extender.history.cancels import find_cancels
from extender.history.queries import check_known, read_choice, read_span, read_time
from extender.history.run_views import USAGE_FIELDS, format_csv, show_run, sum_usage
from extender.history.turns import HistoryTurns
from extender.inspection.access import OWN_ONLY
from extender.runs.model import Ending
from policy.errors import RequestError
from policy.wording import describe, moment
from service.http import json_answer
from service.pagination import read_limit
from state.history.runs import RunFilter, RunPosition
from state.log.log import DecisionLog

_RUN_PARAMETERS: Final = frozenset(
    {"user", "group", "vc", "gang", "outcome", "state", "since", "until", "members", "limit",
     "after"}
)  # fmt: skip
_USAGE_PARAMETERS: Final = frozenset({"user", "group", "since", "until", "by", "format"})
_STATES: Final = {"ended": True, "open": False}
_FORMATS: Final = ("json", "csv")
_BY: Final = ", ".join(USAGE_FIELDS)


class RunRoutes:
    """Serves the history; none of its requests changes anything."""

    def __init__(
        self, turns: HistoryTurns, *, log: DecisionLog, utc_now: Callable[[], datetime]
    ) -> None:
        self._turns = turns
        self._log = log
        self._utc_now = utc_now

    def add_to(self, app: web.Application) -> None:
        """Register the routes."""
        app.router.add_get("/v1/runs", self._runs)
        app.router.add_get("/v1/usage", self._usage)

    async def _runs(self, request: web.Request) -> web.Response:
        query = request.query
        check_known(query, _RUN_PARAMETERS)
        limit = read_limit(query)
        wanted = RunFilter(
            user_name=_own_user(request),
            group_name=query.get("group"),
            vc=query.get("vc"),
            gang=query.get("gang"),
            outcome=read_choice(query, "outcome", tuple(map(str, Ending))),
            has_ended=_STATES.get(read_choice(query, "state", tuple(_STATES)) or ""),
            since=read_time(query, "since"),
            until=read_time(query, "until"),
        )
        with_members = read_choice(query, "members", ("true", "false")) == "true"
        before = _read_position(query.get("after"))
        async with self._turns.take(request) as history:
            found = await history.find(wanted, limit + 1, before=before)
            cancels = await find_cancels(self._log, found[:limit])
        items = [
            show_run(one, with_members=with_members, cancelled=cancels.get(one.facts.run))
            for one in found[:limit]
        ]
        page: dict[str, Any] = {"items": items}
        if len(found) > limit:
            page["next"] = _format_position(found[limit - 1].position)
        return json_answer(page)

    async def _usage(self, request: web.Request) -> web.Response:
        query = request.query
        check_known(query, _USAGE_PARAMETERS)
        by = _read_by(query.get("by", "user"))
        since, until = read_span(query, now=self._utc_now())
        is_csv = read_choice(query, "format", _FORMATS) == "csv" or _accepts_csv(request)
        user, group = _own_user(request), query.get("group")
        async with self._turns.take(request) as history:
            hours = await history.hours_between(since, until, user_name=user, group_name=group)
        items = sum_usage(hours, by)
        if is_csv:
            columns = (*by, "leafCellHours", "gangs")
            return web.Response(text=format_csv(items, columns), content_type="text/csv")
        span = {"since": moment(since), "until": moment(until), "by": list(by)}
        return json_answer({**span, "items": items})


def _own_user(request: web.Request) -> str | None:
    """Return whose runs are wanted; a caller who may read only the own ones gets no others."""
    own, asked = request.get(OWN_ONLY), request.query.get("user")
    if own is not None and asked not in (None, own):
        raise web.HTTPForbidden(text=f"{own} may read only the own runs; leave user out")
    return own or asked


def _read_by(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    if wrong := [name for name in names if name not in USAGE_FIELDS]:
        raise RequestError.at("by", f"must be some of {_BY}, not {describe(wrong[0])}")
    return names


def _accepts_csv(request: web.Request) -> bool:
    return request.headers.get("Accept", "").partition(";")[0].strip() == "text/csv"


def _format_position(position: RunPosition) -> str:
    return f"{position.asked_at.astimezone(UTC).isoformat()}/{position.run}".replace("+00:00", "Z")


def _read_position(text: str | None) -> RunPosition | None:
    if text is None:
        return None
    time, _, run = text.partition("/")
    try:
        return RunPosition(asked_at=datetime.fromisoformat(time).astimezone(UTC), run=run)
    except (ValueError, OverflowError) as exc:
        raise RequestError.at("after", "must be the `next` of a page") from exc
