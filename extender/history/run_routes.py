"""`/v1/runs` and `/v1/usage`: what ran, for whom, for how long, and how it ended.

A caller without the right to read all runs reads the own ones (`extender.inspection.access`). Both
are answered from Postgres: while it is unavailable, they are refused. Every token may ask, so only
few questions are asked at once: the other connections to Postgres are for decisions.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import Any, Final

from aiohttp import web

from extender.history.run_views import USAGE_FIELDS, format_csv, show_run, sum_usage
from extender.inspection.access import OWN_ONLY
from extender.runs.model import Ending
from policy.errors import BackendError, RequestError
from policy.wording import describe
from service.http import json_answer
from service.pagination import read_limit
from state.history.runs import RunFilter, RunHistory, RunPosition

_USUAL_DAYS: Final = 30
_MOST_DAYS: Final = 1100
_FIRST_YEAR: Final = 1970
_RUN_PARAMETERS: Final = frozenset(
    {"user", "group", "vc", "gang", "outcome", "state", "since", "until", "members", "limit",
     "after"}
)  # fmt: skip
_USAGE_PARAMETERS: Final = frozenset({"user", "group", "since", "until", "by", "format"})
_STATES: Final = {"ended": True, "open": False}
_FORMATS: Final = ("json", "csv")
_BY: Final = ", ".join(USAGE_FIELDS)
_AT_ONCE: Final = 2
_MOST_WAITING: Final = 30
_MOST_OF_ONE: Final = 4
"""Questions of one caller that are asked or wait, so that one caller does not take all places."""


class RunRoutes:
    """Serves the history; none of its requests changes anything."""

    def __init__(self, history: RunHistory | None, *, utc_now: Callable[[], datetime]) -> None:
        self._history = history
        self._utc_now = utc_now
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._asking: Counter[str] = Counter()

    def add_to(self, app: web.Application) -> None:
        """Register the routes."""
        app.router.add_get("/v1/runs", self._runs)
        app.router.add_get("/v1/usage", self._usage)

    @asynccontextmanager
    async def _turn(self, request: web.Request) -> AsyncIterator[RunHistory]:
        """Wait until few others read the history; refuse if too many wait."""
        if self._history is None:
            raise BackendError("this extender has no history")
        caller = request.get(OWN_ONLY, "")
        is_over = caller and self._asking[caller] >= _MOST_OF_ONE
        if is_over or self._asking.total() >= _AT_ONCE + _MOST_WAITING:
            why = "too many questions to the history at once; ask again when one is answered"
            raise web.HTTPTooManyRequests(text=why)
        self._asking[caller] += 1
        try:
            async with self._slots:
                yield self._history
        finally:
            self._asking -= Counter([caller])  # drops callers that ask nothing

    async def _runs(self, request: web.Request) -> web.Response:
        query = request.query
        _check_known(query, _RUN_PARAMETERS)
        limit = read_limit(query)
        wanted = RunFilter(
            user_name=_own_user(request),
            group_name=query.get("group"),
            vc=query.get("vc"),
            gang=query.get("gang"),
            outcome=_choice(query, "outcome", tuple(map(str, Ending))),
            has_ended=_STATES.get(_choice(query, "state", tuple(_STATES)) or ""),
            since=_read_time(query, "since"),
            until=_read_time(query, "until"),
        )
        with_members = _choice(query, "members", ("true", "false")) == "true"
        before = _read_position(query.get("after"))
        async with self._turn(request) as history:
            found = await history.find(wanted, limit + 1, before=before)
        items = [show_run(one, with_members=with_members) for one in found[:limit]]
        page: dict[str, Any] = {"items": items}
        if len(found) > limit:
            page["next"] = _format_position(found[limit - 1].position)
        return json_answer(page)

    async def _usage(self, request: web.Request) -> web.Response:
        query = request.query
        _check_known(query, _USAGE_PARAMETERS)
        by, until = _read_by(query.get("by", "user")), _read_time(query, "until") or self._utc_now()
        since = _read_time(query, "since") or until - timedelta(days=_USUAL_DAYS)
        if since >= until:
            raise RequestError.at("since", f"must be before until, which is {until.isoformat()}")
        if until - since > timedelta(days=_MOST_DAYS):
            raise RequestError.at("since", f"must be at most {_MOST_DAYS} days before until")
        is_csv = _choice(query, "format", _FORMATS) == "csv" or _accepts_csv(request)
        user, group = _own_user(request), query.get("group")
        async with self._turn(request) as history:
            hours = await history.hours_between(since, until, user_name=user, group_name=group)
        items = sum_usage(hours, by)
        if is_csv:
            columns = (*by, "leafCellHours", "gangs")
            return web.Response(text=format_csv(items, columns), content_type="text/csv")
        span = {"since": since.isoformat(), "until": until.isoformat(), "by": list(by)}
        return json_answer({**span, "items": items})


def _own_user(request: web.Request) -> str | None:
    """Return whose runs are wanted; a caller who may read only the own ones gets no others."""
    own, asked = request.get(OWN_ONLY), request.query.get("user")
    if own is not None and asked not in (None, own):
        raise web.HTTPForbidden(text=f"{own} may read only the own runs; leave user out")
    return own or asked


def _check_known(query: Mapping[str, str], known: frozenset[str]) -> None:
    for name in query:
        if name not in known:
            raise RequestError.at(name, f"is no parameter; there are {', '.join(sorted(known))}")


def _choice(query: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str | None:
    text = query.get(name)
    if text is not None and text not in choices:
        raise RequestError.at(name, f"must be one of {', '.join(choices)}, not {describe(text)}")
    return text


def _read_by(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    if wrong := [name for name in names if name not in USAGE_FIELDS]:
        raise RequestError.at("by", f"must be some of {_BY}, not {describe(wrong[0])}")
    return names


def _read_time(query: Mapping[str, str], name: str) -> datetime | None:
    """Read a moment as in RFC 3339, or a UTC day."""
    text = query.get(name)
    if text is None:
        return None
    try:
        # In a query, a plus sign stands for a space.
        time = datetime.fromisoformat(text.replace(" ", "+"))
        if not _FIRST_YEAR <= time.year < MAXYEAR:  # days before it, and other zones, have a date
            raise ValueError
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    except ValueError as exc:
        hint = "such as 2026-03-01 or 2026-03-01T12:00:00Z"
        raise RequestError.at(name, f"must be a time {hint}, not {describe(text)}") from exc


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
