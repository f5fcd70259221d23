"""`/v1/inspect/…`: HiveD's inspection API over HTTP, with HiveD's errors."""

import asyncio
import operator
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from aiohttp import web

from extender.cells.model import GangView
from extender.cells.views.listings import Stepwise
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.inspection.hived_views import ClusterStatus, VirtualLeaves, show_group
from extender.inspection.snapshots import Snapshots, Status
from policy.submission import GangKey, VcName
from policy.topology import Topology
from service.http import encode_json, json_answer, raw_json_answer
from service.tasks import in_slices

_ROOT = "/v1/inspect"


class HivedRoutes:
    """Serves OpenPAI and other programs that read HiveD's API."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        snapshots: Snapshots,
        pods: PodSink,
        downgrades: Mapping[GangKey, datetime],
    ) -> None:
        """`downgrades` says when gangs were downgraded."""
        self._cluster = cluster
        self._downgrades = downgrades
        self._snapshots = snapshots
        self._pods = pods
        self._of_topology: Topology | None = None
        self._leaves: VirtualLeaves | None = None
        self._building = asyncio.Lock()
        self._views: Status | None = None
        self._built: dict[str, bytes] = {}
        """Responses about these views, by path."""

    def add_to(self, app: web.Application) -> None:
        """Register the routes."""
        status = f"{_ROOT}/clusterstatus"
        for path, handler in (
            (f"{_ROOT}/affinitygroups", self._groups),
            (f"{_ROOT}/affinitygroups/", self._groups),
            (f"{_ROOT}/affinitygroups/{{name:.+}}", self._group),
            (status, self._status(lambda whole: whole.whole())),
            (f"{status}/physicalcluster", self._status(lambda whole: whole.physical())),
            (f"{status}/virtualclusters", self._status(lambda whole: whole.virtual())),
            (f"{status}/virtualclusters/", self._status(lambda whole: whole.virtual())),
            (f"{status}/virtualclusters/{{vc}}", self._vc),
        ):
            app.router.add_get(path, handler)

    async def _groups(self, _: web.Request) -> web.Response:
        shown = await in_slices(self._show_all(await self._snapshots.gangs()))
        return json_answer({"items": shown})

    def _show_all(self, gangs: Iterable[GangView]) -> Stepwise[list[Any]]:
        shown = []
        for gang in gangs:
            yield
            shown.append(self._show(gang, self._name(gang)))
        return shown

    async def _group(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        for gang in await self._snapshots.gangs():
            if name in (self._name(gang), str(gang.gang)):
                return json_answer(self._show(gang, name))
        return _user_error(
            f"Affinity group {name} does not exist since it is not allocated or preempting"
        )

    async def _vc(self, request: web.Request) -> web.Response:
        name = VcName(request.match_info["vc"])
        if name not in await self._snapshots.vcs():
            return _user_error(f"VC {name} not found")
        return await self._status(lambda status: status.of_vc(name))(request)

    def _status(
        self, choose: Callable[[ClusterStatus], Any]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            return raw_json_answer(await self._build(request.path, choose))

        return handle

    async def _build(self, path: str, choose: Callable[[ClusterStatus], Any]) -> bytes:
        """Build a response in a thread, one at a time; again only after the views changed."""
        async with self._building:
            views = await self._snapshots.status()
            if self._views is None or not all(map(operator.is_, self._views, views)):
                self._views, self._built = views, {}
            if path not in self._built:
                body = await asyncio.to_thread(lambda: encode_json(choose(ClusterStatus(*views))))
                self._built[path] = body
            return self._built[path]

    def _show(self, gang: GangView, name: str) -> Any:  # noqa: ANN401 - JSON
        topology = self._cluster.topology
        if topology is not self._of_topology:
            self._of_topology = topology
            self._leaves = VirtualLeaves(topology) if topology else None
        at = self._downgrades.get(gang.gang)
        return show_group(gang, name=name, leaves=self._leaves, downgraded_at=at)

    def _name(self, gang: GangView) -> str:
        """Return HiveD's name of a gang: that of the affinity group, or `namespace/pod`."""
        for uid in (*gang.members, *gang.waiting_members):
            pod = self._pods.get(uid)
            if pod is not None and pod.hived is not None and pod.hived.gang is not None:
                return gang.gang.name
        return str(gang.gang)


def _user_error(message: str) -> web.Response:
    return json_answer(f"hivedscheduler: User Error: {message}", status=400)
