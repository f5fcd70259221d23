"""`/v1/queue`: the gangs that wait for cells or for quota, in their order, and why.

A caller without the right to read the whole queue reads the own gangs (`access`): their places
count all gangs, and other users' gangs are not named.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from aiohttp import web

from extender.cells.views.listings import Stepwise
from extender.inspection.access import OWN_ONLY
from extender.inspection.json_views import JsonObject
from extender.inspection.queue.queue_view import show_level, show_listed
from extender.inspection.queue.variant_view import VariantsOf, no_variants, show_variants
from extender.inspection.waiting_view import CELLS_QUEUE, QUOTA_QUEUE, QueuePlace, WaitingView
from extender.queue.variants.model import Variants
from policy.errors import RequestError
from policy.queues.queues import Queues
from policy.submission import GangKey
from policy.wording import listing, quote
from service.http import json_answer
from service.pagination import page_of
from service.tasks import in_slices

_PARAMETERS: Final = frozenset({"gang", "vc", "level", "user", "queue", "limit", "after"})
_AT_ONCE: Final = 100
_PAGING: Final = frozenset({"limit", "after"})
_MOST_VARIED: Final = 4
"""Gangs of one name for which variants are searched."""


class QueueRoutes:
    """Serves the queue; none of its requests changes anything."""

    def __init__(
        self,
        waiting: WaitingView,
        *,
        queues: Callable[[], Queues],
        variants_of: VariantsOf = no_variants,
    ) -> None:
        self._waiting = waiting
        self._queues = queues
        self._variants_of = variants_of

    def add_to(self, app: web.Application) -> None:
        """Register the route."""
        app.router.add_get("/v1/queue", self._queue)

    async def _queue(self, request: web.Request) -> web.Response:
        for name in request.query:
            if name not in _PARAMETERS:
                known = ", ".join(sorted(_PARAMETERS))
                raise RequestError.at(name, f"unknown parameter; known parameters are {known}")
        viewer, queues = request.get(OWN_ONLY), self._queues()
        _check_viewer(request, viewer)
        _check_values(request, queues)
        places = (await self._waiting.places()).values()
        counted = Counter(one.listed.standing.level_name for one in places)
        levels = [show_level(one, gangs=counted[one.name]) for one in queues.levels]
        wanted = await in_slices(_select(places, request, viewer))
        varied = await self._find_variants(request, list(wanted.values()))
        page = page_of(
            wanted,
            request.query,
            show=lambda one: {
                "queue": one.queue,
                **show_listed(
                    one.listed, queues, awaits_quota=one.queue != CELLS_QUEUE, viewer=viewer
                ),
                **self._waiting.show_why(one.listed.facts.gang, viewer=viewer),
                **self._waiting.show_start(one, viewer=viewer),
                **self._waiting.show_reservation(one.listed.facts.gang, viewer=viewer),
                **show_variants(varied.get(one.listed.facts.gang), viewer=viewer),
            },
        )
        return json_answer({"levels": levels, **page, **self._explain_absence(request, wanted)})

    def _explain_absence(
        self, request: web.Request, wanted: Mapping[str, QueuePlace]
    ) -> JsonObject:
        """Say why a gang that was asked for by its name is not listed, as a field."""
        gang, viewer = request.query.get("gang"), request.get(OWN_ONLY)
        if gang is None or wanted or not _PAGING.issuperset({*request.query} - {"gang"}):
            return {}
        return {"explanation": [self._waiting.explain_absence(gang, viewer=viewer)]}

    async def _find_variants(
        self, request: web.Request, wanted: Sequence[QueuePlace]
    ) -> dict[GangKey, Variants | None]:
        """Find what would let gangs start earlier, if the request is about one name."""
        if "gang" not in request.query:
            return {}
        gangs = [one.listed.facts.gang for one in wanted if one.queue == CELLS_QUEUE]
        return {gang: await self._variants_of(gang) for gang in gangs[:_MOST_VARIED]}


def _select(
    places: Iterable[QueuePlace], request: web.Request, viewer: str | None
) -> Stepwise[dict[str, QueuePlace]]:
    """Return the gangs that a request is about, by keys of pages. Yields often."""
    wanted: dict[str, QueuePlace] = {}
    for number, one in enumerate(places):
        if _is_wanted(one, request, viewer):
            wanted[_page_key(one)] = one
        if number % _AT_ONCE == 0:
            yield
    return wanted


def _page_key(place: QueuePlace) -> str:
    """Return a key that sorts gangs by their order."""
    return f"{place.queue}/{place.listed.place:08d}"


def _check_viewer(request: web.Request, viewer: str | None) -> None:
    if viewer is not None and request.query.get("user", viewer) != viewer:
        raise web.HTTPForbidden(text=f"{viewer} may read only the own gangs; leave user out")


def _check_values(request: web.Request, queues: Queues) -> None:
    """Refuse what no gang can have, rather than answer that none has it."""
    query, levels = request.query, [one.name for one in queues.levels]
    known = {"queue": [CELLS_QUEUE, QUOTA_QUEUE], "level": levels}
    for name, values in known.items():
        if query.get(name, values[0]) not in values:
            raise RequestError.at(name, f"must be one of {listing(values)}")
    gang = query.get("gang", "namespace/name")
    if not all(gang.partition("/")):
        raise RequestError.at("gang", f"must be namespace/name, such as ml/bert, not {quote(gang)}")


def _is_wanted(place: QueuePlace, request: web.Request, viewer: str | None) -> bool:
    query, facts = request.query, place.listed.facts
    if viewer is not None and facts.user != viewer:
        return False
    wanted = {
        "gang": str(facts.gang),
        "vc": facts.vc,
        "user": facts.user,
        "queue": place.queue,
        "level": place.listed.standing.level_name,
    }
    return all(query.get(name, value) == value for name, value in wanted.items())
