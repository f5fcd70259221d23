"""`/v1/queue`: the gangs that wait for cells or for quota, in their order, and why.

A caller without the right to read the whole queue reads the own gangs (`access`): their places
count all gangs, and other users' gangs are not named.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from aiohttp import web

from extender.inspection.access import OWN_ONLY
from extender.inspection.queue.queue_view import show_level, show_listed
from extender.inspection.waiting_view import QueuePlace, WaitingView
from policy.errors import RequestError
from policy.queues.queues import Queues
from service.http import json_answer
from service.pagination import page_of

_PARAMETERS: Final = frozenset({"vc", "level", "user", "queue", "limit", "after"})


class QueueRoutes:
    """Serves the queue; none of its requests changes anything."""

    def __init__(self, waiting: WaitingView, *, queues: Callable[[], Queues]) -> None:
        self._waiting = waiting
        self._queues = queues

    def add_to(self, app: web.Application) -> None:
        """Register the route."""
        app.router.add_get("/v1/queue", self._queue)

    async def _queue(self, request: web.Request) -> web.Response:
        for name in request.query:
            if name not in _PARAMETERS:
                known = ", ".join(sorted(_PARAMETERS))
                raise RequestError.at(name, f"unknown parameter; known parameters are {known}")
        viewer, queues = request.get(OWN_ONLY), self._queues()
        places = self._waiting.places().values()
        counted = Counter(one.listed.standing.level_name for one in places)
        levels = [show_level(one, gangs=counted[one.name]) for one in queues.levels]
        wanted = {_page_key(one): one for one in places if _is_wanted(one, request, viewer)}
        page = page_of(
            wanted,
            request.query,
            show=lambda one: {
                "queue": one.queue,
                **show_listed(one.listed, queues, viewer=viewer),
                **self._waiting.show_start(one, viewer=viewer),
                **self._waiting.show_reservation(one.listed.facts.gang, viewer=viewer),
            },
        )
        return json_answer({"levels": levels, **page})


def _page_key(place: QueuePlace) -> str:
    """Return a key that sorts gangs by their order."""
    return f"{place.queue}/{place.listed.place:08d}"


def _is_wanted(place: QueuePlace, request: web.Request, viewer: str | None) -> bool:
    query, facts = request.query, place.listed.facts
    if viewer is not None and query.get("user", viewer) != viewer:
        raise web.HTTPForbidden(text=f"{viewer} may read only the own gangs; leave user out")
    wanted = {
        "vc": facts.vc,
        "user": facts.user,
        "queue": place.queue,
        "level": place.listed.standing.level_name,
    }
    is_own = viewer is None or facts.user == viewer
    return is_own and all(query.get(name, value) == value for name, value in wanted.items())
