"""`/v1/…` over HTTP: nodes, gangs, VCs, cells, waiting gangs, decisions, explanations."""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from extender.cells.model import GangView
from extender.cells.views.state_views import VcView
from extender.cluster.cluster import Cluster
from extender.inspection import json_views
from extender.inspection.access import CALLER
from extender.inspection.explainer import Explainer
from extender.inspection.gang_runs import GangRuns
from extender.inspection.node_views import NodeViews
from extender.inspection.openapi import build_openapi
from extender.inspection.queue.variant_view import show_variants
from extender.inspection.snapshots import Snapshots
from extender.inspection.waiting_view import WaitingView
from extender.simulate.simulator import SimulateArguments, Simulator
from policy.errors import RequestError
from policy.submission import VcName
from service.bodies import parse_body
from service.http import json_answer, read_body
from service.pagination import page_of, read_limit
from state.log.log import DecisionLog
from state.log.positions import END, Position


class InspectionRoutes:
    """Serves the inspection API; none of its requests changes anything."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        snapshots: Snapshots,
        waiting: WaitingView,
        explainer: Explainer,
        simulator: Simulator,
        runs: GangRuns,
        nodes: NodeViews,
        log: DecisionLog,
    ) -> None:
        self._cluster = cluster
        self._snapshots = snapshots
        self._waiting = waiting
        self._explainer = explainer
        self._simulator = simulator
        self._runs = runs
        self._node_views = nodes
        self._log = log

    def add_to(self, app: web.Application) -> None:
        """Register the routes."""
        for path, handler in (
            ("/", self._index),
            ("/openapi.json", self._openapi),
            ("/v1/nodes", self._nodes),
            ("/v1/gangs", self._gangs),
            ("/v1/gangs/{namespace}/{name:.+}", self._gang),
            ("/v1/leases", self._leases),
            ("/v1/foreign", self._foreign),
            ("/v1/waiting", self._waiting_pods),
            ("/v1/vcs", self._vcs),
            ("/v1/vcs/{vc}", self._vc),
            ("/v1/cells", self._cells),
            ("/v1/decisions", self._decisions),
            ("/v1/explain/{namespace}/{pod}", self._explain),
        ):
            app.router.add_get(path, handler)
        app.router.add_post("/v1/simulate", self._simulate)

    async def _index(self, request: web.Request) -> web.Response:
        paths = sorted(
            resource.canonical for resource in request.app.router.resources() if resource.canonical
        )
        return json_answer({"service": "cellgate extender", "paths": paths})

    async def _openapi(self, _: web.Request) -> web.Response:
        return json_answer(build_openapi())

    async def _nodes(self, request: web.Request) -> web.Response:
        nodes = {str(node.name): (node, held) for node, held in await self._snapshots.nodes()}
        return _page(nodes, request, lambda pair: self._node_views.show(*pair))

    async def _gangs(self, request: web.Request) -> web.Response:
        gangs = {_page_key(gang): gang for gang in await self._snapshots.gangs()}
        return _page(gangs, request, self._runs.show_gang)

    async def _gang(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        found = await self._runs.show(namespace, name)
        if found is None:
            hint = (
                f"/v1/explain/{namespace}/{name} shows what was decided about it, if anything was"
            )
            raise web.HTTPNotFound(text=f"gang {namespace}/{name} has no pods now; {hint}")
        return json_answer(found)

    async def _leases(self, request: web.Request) -> web.Response:
        gangs = filter(json_views.is_leased, await self._snapshots.gangs())
        leased = {_page_key(gang): gang for gang in gangs}
        return _page(leased, request, self._runs.show_lease)

    async def _foreign(self, request: web.Request) -> web.Response:
        return _page(self._explainer.foreign(), request, lambda pod: pod)

    async def _waiting_pods(self, request: web.Request) -> web.Response:
        pods = {entry.pod.display_name: entry for entry in self._waiting}
        places = await self._waiting.places()
        return _page(pods, request, lambda entry: self._waiting.show(entry, places))

    async def _vcs(self, request: web.Request) -> web.Response:
        vcs = {str(name): vc for name, vc in (await self._snapshots.vcs()).items()}
        return _page(vcs, request, self._show_vc)

    def _show_vc(self, vc: VcView) -> json_views.JsonObject:
        return json_views.show_vc(vc, self._cluster.backing(vc.name))

    async def _vc(self, request: web.Request) -> web.Response:
        name = VcName(request.match_info["vc"])
        vc = (await self._snapshots.vcs()).get(name)
        if vc is None:
            raise web.HTTPNotFound(text=f"VC {name} does not exist")
        return json_answer(self._show_vc(vc))

    async def _cells(self, request: web.Request) -> web.Response:
        cells = {str(cell.address): cell for cell in await self._snapshots.cells()}
        return _page(cells, request, json_views.show_cell)

    async def _decisions(self, request: web.Request) -> web.Response:
        limit, before = read_limit(request.query), _read_position(request.query.get("after"))
        subject = request.query.get("subject")
        records = await self._log.recent(limit + 1, subject=subject, before=before)
        page: dict[str, Any] = {"items": list(map(json_views.show_record, records[:limit]))}
        if len(records) > limit:
            page["next"] = str(Position.of(records[limit - 1]))
        return json_answer(page)

    async def _explain(self, request: web.Request) -> web.Response:
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        found = await self._explainer.explain(namespace, pod)
        if found is None:
            raise web.HTTPNotFound(
                text=f"there is no pod {namespace}/{pod} that asks for leaf cells, and the log has "
                "no decision about it"
            )
        return json_answer(found)

    async def _simulate(self, request: web.Request) -> web.Response:
        arguments = parse_body(SimulateArguments, await read_body(request))
        caller = request.get(CALLER)
        if caller is not None and "user" not in arguments.model_fields_set:
            own = {"user": caller.name, "groups": [*caller.groups, *arguments.groups]}
            arguments = arguments.model_copy(update=own)
        simulation = await self._simulator.simulate(arguments)
        shown = json_views.show_simulation(simulation, self._explainer.pods_of)
        return json_answer({**shown, **show_variants(simulation.variants)})


def _read_position(text: str | None) -> Position:
    try:
        return END if text is None else Position.parse(text)
    except ValueError as exc:
        raise RequestError.at("after", "must be the `next` of a page") from exc


def _page_key(gang: GangView) -> str:
    """Return what tells a gang from all others: several runs may have one name."""
    return f"{gang.gang.namespace}/{gang.gang.stored_name}"


def _page(items: dict[str, Any], request: web.Request, show: Callable[[Any], Any]) -> web.Response:
    return json_answer(page_of(items, request.query, show=show))
