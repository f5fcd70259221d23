"""What the API server has, read twice a second; readers wait for the next reading."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from tests.controlplane.api import Api, ApiError, JsonObject

READ_SECONDS: Final = 0.5
WORKLOAD_LABEL: Final = "zoo.test/workload"
_PATHS: Final = {
    "Pod": "/api/v1/pods",
    "Node": "/api/v1/nodes",
    "Job": "/apis/batch/v1/jobs",
    "Deployment": "/apis/apps/v1/deployments",
    "StatefulSet": "/apis/apps/v1/statefulsets",
}


def key_of(obj: JsonObject) -> str:
    """The namespace and the name of an object."""
    metadata = obj["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


@dataclass(slots=True)
class Snapshot:
    """All objects of the kinds above at about one moment."""

    at: float = 0.0
    objects: dict[str, dict[str, JsonObject]] = field(
        default_factory=lambda: {kind: {} for kind in _PATHS}
    )

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        """One object, if it exists."""
        return self.objects[kind].get(f"{namespace}/{name}")

    def pods(self, namespace: str, workload: str) -> list[JsonObject]:
        """The pods of a workload of the zoo."""
        return [
            pod
            for pod in self.objects["Pod"].values()
            if pod["metadata"]["namespace"] == namespace and workload_of(pod) == workload
        ]


class Snapshots:
    """Reads for as long as it runs."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.latest = Snapshot()
        self.on_reading: list[Callable[[Snapshot], None]] = []
        self._next = asyncio.Event()
        self.failures = 0

    async def run(self) -> None:
        """Read again and again."""
        while True:
            with contextlib.suppress(ApiError, aiohttp.ClientError, TimeoutError):
                await self._read()
            await asyncio.sleep(READ_SECONDS)

    async def _read(self) -> None:
        lists = await asyncio.gather(*(self._api.list(path) for path in _PATHS.values()))
        objects = {
            kind: {key_of(obj): obj for obj in found}
            for kind, found in zip(_PATHS, lists, strict=True)
        }
        self.latest = Snapshot(at=time.monotonic(), objects=objects)
        for observe in self.on_reading:
            observe(self.latest)
        self._next.set()
        self._next = asyncio.Event()

    async def next(self) -> Snapshot:
        """Wait for the next reading."""
        await self._next.wait()
        return self.latest


def workload_of(pod: JsonObject) -> str:
    """The workload of the zoo that a pod belongs to; empty for other pods."""
    return str((pod["metadata"].get("labels") or {}).get(WORKLOAD_LABEL, ""))


def is_live(pod: JsonObject) -> bool:
    """Whether a pod has neither ended nor been told to."""
    return not is_over(pod) and "deletionTimestamp" not in pod["metadata"]


def is_over(pod: JsonObject) -> bool:
    """Whether a pod has succeeded or failed."""
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def is_bound(pod: JsonObject) -> bool:
    """Whether a pod has a node."""
    return bool(pod["spec"].get("nodeName"))


def is_ready(pod: JsonObject) -> bool:
    """Whether a live pod runs and is ready."""
    conditions = pod["status"].get("conditions") or []
    return is_live(pod) and any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def devices(pod: JsonObject) -> int:
    """How many devices a pod asks for."""
    limits = [
        container.get("resources", {}).get("limits", {}) for container in pod["spec"]["containers"]
    ]
    return sum(int(limit.get("nvidia.com/gpu", 0)) for limit in limits)
