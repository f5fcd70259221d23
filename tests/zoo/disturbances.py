"""What happens to pods, nodes and Cellgate's processes, at random."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable

import aiohttp

from tests.controlplane.api import ApiError, JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import NodeShape
from tests.support.installed.installation import Installation
from tests.zoo.lives import CRASH_LABEL
from tests.zoo.snapshots import Snapshots, is_bound, is_live, is_over, workload_of

_MOST_CRASHES = 2
"""Of one workload: the Job controller waits longer after each."""


class Disturbances:
    """One disturbance after the other, until it is told to stop; then everything is put right."""

    def __init__(
        self,
        plane: ControlPlane,
        cellgate: Installation,
        *,
        snapshots: Snapshots,
        shape: NodeShape,
        seed: str,
    ) -> None:
        self._plane = plane
        self._cellgate = cellgate
        self._snapshots = snapshots
        self._shape = shape
        self._dice = random.Random(f"{seed}/disturbances")
        self._stops = asyncio.Event()
        self.done: Counter[str] = Counter()
        self.crashes: Counter[str] = Counter()
        """Pods that were made to fail, by workload."""
        self.evictions: Counter[str] = Counter()
        """Pods whose node went away, by workload."""
        self.log: list[str] = []

    def stop(self) -> None:
        """Let the one that is under way be the last."""
        self._stops.set()

    async def run(self, *, without: frozenset[str], pause_seconds: float) -> None:
        """Disturb until told to stop."""
        ways: dict[str, Callable[[], Awaitable[None]]] = {
            "crash": self._crash,
            "drain": self._drain,
            "node": self._lose_node,
            "extender": self._end_extender,
            "webhook": self._end_webhook,
            "scheduler": self._end_scheduler,
        }
        names = [name for name in ways if name not in without]
        weights = [{"crash": 4, "drain": 2}.get(name, 1) for name in names]
        while names and not self._stops.is_set():
            with contextlib.suppress(TimeoutError):
                pause = self._dice.uniform(0.5, 1.5) * pause_seconds
                await asyncio.wait_for(self._stops.wait(), pause)
                return
            (name,) = self._dice.choices(names, weights)
            with contextlib.suppress(ApiError, aiohttp.ClientError):
                await ways[name]()
                self.done[name] += 1

    async def _crash(self) -> None:
        """Let a running pod fail."""
        pods = [
            pod
            for pod in self._snapshots.latest.objects["Pod"].values()
            if is_live(pod)
            and pod["status"].get("phase") == "Running"
            and CRASH_LABEL in (pod["metadata"].get("labels") or {})
            and self.crashes[workload_of(pod)] < _MOST_CRASHES
        ]
        if not pods:
            return
        pod = self._dice.choice(sorted(pods, key=lambda it: str(it["metadata"]["name"])))
        metadata = pod["metadata"]
        self.crashes[workload_of(pod)] += 1
        self.log.append(f"crash {metadata['name']}")
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        change = {"annotations": {"test.cellgate.io/fail-after": "100ms"}}
        await self._plane.api.patch(path, {"metadata": change})

    async def _drain(self) -> None:
        """Cordon a node, evict its pods, and give it back after a while."""
        node = self._any_node()
        path = f"/api/v1/nodes/{node}"
        self.log.append(f"drain {node}")
        await self._plane.api.patch(path, {"spec": {"unschedulable": True}})
        try:
            await self._evict_all(node)
            await asyncio.sleep(self._dice.uniform(2, 6))
        finally:
            await self._plane.api.patch(path, {"spec": {"unschedulable": False}})

    async def _evict_all(self, node: str) -> None:
        for pod in self._pods_on(node):
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
            name = {"name": metadata["name"], "namespace": metadata["namespace"]}
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": name}
            self.evictions[workload_of(pod)] += 1
            with contextlib.suppress(ApiError):
                await self._plane.api.create(path, body)

    async def _lose_node(self) -> None:
        """Delete a node, and add it again after a while."""
        node = self._any_node()
        self.log.append(f"delete {node}")
        for pod in self._pods_on(node):
            self.evictions[workload_of(pod)] += 1
        await self._plane.delete_nodes([node])
        try:
            await asyncio.sleep(self._dice.uniform(2, 6))
        finally:
            await self._plane.add_nodes(1, self._shape, first=int(node.rsplit("-", 1)[1]))

    async def _end_extender(self) -> None:
        replica = self._dice.randrange(len(self._cellgate.extenders))
        process = self._cellgate.extenders[replica]
        is_leader = await self._cellgate.leader() == replica
        self.log.append(f"end extender {replica}, {'the leader' if is_leader else 'a standby'}")
        if self._dice.random() < 0.5:
            process.kill()
        else:
            await process.stop()
        await self._cellgate.start_extender(replica)

    async def _end_webhook(self) -> None:
        replica = self._dice.randrange(len(self._cellgate.webhooks))
        self.log.append(f"end webhook {replica}")
        if self._dice.random() < 0.5:
            self._cellgate.webhooks[replica].kill()
        else:
            await self._cellgate.webhooks[replica].stop(grace_seconds=30)
        await self._cellgate.start_webhook(replica)

    async def _end_scheduler(self) -> None:
        self.log.append("restart the scheduler")
        await self._cellgate.scheduler.restart()

    def _any_node(self) -> str:
        return str(self._dice.choice(sorted(self._snapshots.latest.objects["Node"]))).lstrip("/")

    def _pods_on(self, node: str) -> list[JsonObject]:
        """The pods that have not ended: those that have count for their gangs while they exist."""
        pods = self._snapshots.latest.objects["Pod"].values()
        here = [pod for pod in pods if is_bound(pod) and pod["spec"]["nodeName"] == node]
        return [pod for pod in here if not is_over(pod)]
