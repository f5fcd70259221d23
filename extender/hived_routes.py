"""`/v1/inspect/…`: HiveD's inspection API over HTTP, with HiveD's errors."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from extender.cells.model import GangView
from extender.cluster import Cluster
from extender.hived_views import ClusterStatus, VirtualLeaves, show_group
from extender.pods import PodSink
from extender.snapshots import Snapshots
from policy.submission import VcName
from policy.topology import Topology
from service.http import encode_json, json_answer, raw_json_answer

_ROOT = "/v1/inspect"


class HivedRoutes:
    """What OpenPAI and other users of HiveD ask."""

    def __init__(self, *, cluster: Cluster, snapshots: Snapshots, pods: PodSink) -> None:
        self._cluster = cluster
        self._snapshots = snapshots
        self._pods = pods
        self._of_topology: Topology | None = None
        self._leaves: VirtualLeaves | None = None

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
        gangs = self._snapshots.gangs().values()
        return json_answer({"items": [self._show(gang, self._name(gang)) for gang in gangs]})

    async def _group(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        for gang in self._snapshots.gangs().values():
            if name in (self._name(gang), str(gang.gang)):
                return json_answer(self._show(gang, name))
        return _user_error(
            f"Affinity group {name} does not exist since it is not allocated or preempting"
        )

    async def _vc(self, request: web.Request) -> web.Response:
        name = VcName(request.match_info["vc"])
        if name not in self._snapshots.vcs():
            return _user_error(f"VC {name} not found")
        return await self._status(lambda status: status.of_vc(name))(request)

    def _status(
        self, choose: Callable[[ClusterStatus], Any]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(_: web.Request) -> web.Response:
            views = self._snapshots.cells(), self._snapshots.vcs(), self._cluster.topology
            # The views do not change: shaping thousands of cells need not hold up the verbs.
            body = await asyncio.to_thread(lambda: encode_json(choose(ClusterStatus(*views))))
            return raw_json_answer(body)

        return handle

    def _show(self, gang: GangView, name: str) -> Any:  # noqa: ANN401 - JSON
        topology = self._cluster.topology
        if topology is not self._of_topology:
            self._of_topology = topology
            self._leaves = VirtualLeaves(topology) if topology else None
        return show_group(gang, name=name, leaves=self._leaves)

    def _name(self, gang: GangView) -> str:
        """HiveD's name of a gang: global for an affinity group, `namespace/pod` for one pod."""
        for uid in (*gang.members, *gang.asking):
            pod = self._pods.get(uid)
            if pod is not None and pod.hived is not None and pod.hived.gang is not None:
                return gang.gang.name
        return str(gang.gang)


def _user_error(message: str) -> web.Response:
    return json_answer(f"hivedscheduler: User Error: {message}", status=400)
