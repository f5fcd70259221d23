"""`/v1/windows`: the largest gangs that can start now in each VC, and until when.

A caller without the right to read all windows reads those of the VCs that are open to the caller
(`access`), and no names of gangs.
"""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from extender.inspection.access import CALLER, OWN_ONLY
from extender.inspection.json_views import JsonObject, if_any
from extender.inspection.queue.variant_view import show_reserved
from extender.queue.variants.sentences import shape_sentence
from extender.queue.variants.start_windows import StartWindow, WindowShape
from extender.simulate.open_vcs import OpenVcs
from extender.simulate.start_windows import StartWindows
from policy.errors import RequestError
from policy.submission import GangKey, LeafType, VcName
from policy.wording import listing, moment, quote
from service.http import json_answer
from service.pagination import page_of, read_limit

_PARAMETERS: Final = frozenset({"vc", "leafType", "limit", "after"})
_MOST: Final = 50
"""VCs and leaf types that one answer is about."""


class WindowRoutes:
    """Serves windows; none of its requests changes anything."""

    def __init__(self, windows: StartWindows, open_vcs: OpenVcs) -> None:
        self._windows = windows
        self._open_vcs = open_vcs

    def add_to(self, app: web.Application) -> None:
        """Register the route."""
        app.router.add_get("/v1/windows", self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        for name in request.query:
            if name not in _PARAMETERS:
                known = ", ".join(sorted(_PARAMETERS))
                raise RequestError.at(name, f"unknown parameter; known parameters are {known}")
        viewer = request.get(OWN_ONLY)
        vcs = self._read_vcs(request, viewer)
        wanted = {f"{vc}/{leaf}": (vc, leaf) for vc in vcs for leaf in self._read_types(request)}
        limit = str(min(_MOST, read_limit(request.query)))
        page = page_of(wanted, {**request.query, "limit": limit}, show=lambda one: one)
        shown = [await self._show(vc, leaf, viewer) for vc, leaf in page["items"]]
        return json_answer({**page, "items": shown})

    def _read_vcs(self, request: web.Request, viewer: str | None) -> Sequence[VcName]:
        """Return the VCs that a request is about, as far as its caller may use them."""
        caller, known = request.get(CALLER), self._open_vcs.all()
        if viewer is not None:
            known = self._open_vcs.of_user(viewer, caller.groups if caller is not None else ())
        vc = request.query.get("vc")
        if vc is None:
            return known
        if VcName(vc) not in known:
            why = f"VC {quote(vc)} does not exist"
            if viewer is not None:
                why += f", or is not open to {quote(viewer)}; VCs open to you: {listing(known)}"
            raise web.HTTPNotFound(text=why)
        return [VcName(vc)]

    def _read_types(self, request: web.Request) -> Sequence[LeafType]:
        known, wanted = self._windows.leaf_types(), request.query.get("leafType")
        if wanted is None:
            return known
        if LeafType(wanted) not in known:
            raise web.HTTPNotFound(
                text=f"there is no leaf type {quote(wanted)}; leaf types are {listing(known)}"
            )
        return [LeafType(wanted)]

    async def _show(self, vc: VcName, leaf_type: LeafType, viewer: str | None) -> JsonObject:
        shown: JsonObject = {"vc": vc, "leafType": leaf_type}
        if self._windows.is_promised(vc, leaf_type):
            window = await self._windows.find(vc, leaf_type)
            shown["guaranteed"] = _show_window(window, viewer)
        window = await self._windows.find(None, leaf_type)
        return shown | {"opportunistic": _show_window(window, viewer)}


def _show_window(window: StartWindow, viewer: str | None) -> JsonObject:
    largest, single = window.largest, window.largest_on_one_node
    return {
        "computed": moment(window.at),
        "largest": None if largest is None else _show_shape(largest, viewer),
        "largestOnOneNode": None if single is None else _show_shape(single, viewer),
        "shapes": [_show_shape(one, viewer) for one in window.shapes],
    }


def _show_shape(one: WindowShape, viewer: str | None) -> JsonObject:
    return {
        "members": one.members,
        "leafCellsPerMember": one.leaf_cells,
        "leafCells": one.total,
        **({"orMore": True} if one.is_most else {}),
        **if_any("until", None if one.until is None else moment(one.until)),
        **show_reserved(one.reserved_for, viewer),
        **if_any("window", one.window),
        **if_any("preempts", one.victims or None),
        "explanation": shape_sentence(one, show=moment, name=str if viewer is None else _anonymous),
    }


def _anonymous(_: GangKey) -> str:
    return "another gang"
