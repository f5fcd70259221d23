"""The life of one workload: created as a user does it, followed, changed, removed."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

import aiohttp

from tests.controlplane.api import Api, ApiError, JsonObject
from tests.zoo.snapshots import WORKLOAD_LABEL, Snapshot, Snapshots

GANG_LABEL: Final = "zoo.test/gang"
"""What the observer takes for one gang, whatever Cellgate does."""
NEED_LABEL: Final = "zoo.test/need"
"""How many members make it whole."""
BY_JOB_LABEL: Final = "zoo.test/by-job"
"""Every Job has a gang of its own under that name."""
CRASH_LABEL: Final = "zoo.test/may-crash"
CLASSES: Final = ("prod", "test", "oppo", "oppo")

_AGAIN_SECONDS: Final = 0.5
_PATHS: Final = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "CronJob": "/apis/batch/v1/namespaces/{}/cronjobs",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "PodGroup": "/apis/scheduling.k8s.io/v1beta1/namespaces/{}/podgroups",
}


class RefusedError(Exception):
    """Cellgate refused an object that a user may create."""


class Life:
    """One workload, its user and the world as they see it."""

    def __init__(
        self, kind: str, number: int, *, api: Api, namespace: str, snapshots: Snapshots, seed: str
    ) -> None:
        self.kind = kind
        self.name = f"{kind}-{number}"
        self.namespace = namespace
        self.dice = random.Random(f"{seed}/{number}")
        self.waits_for = "its turn"
        self.outcome = "under way"
        self.tolerates = 6
        """How many failures of pods it tolerates."""
        self.ignores_disruptions = False
        self._api = api
        self._snapshots = snapshots

    @property
    def snapshot(self) -> Snapshot:
        """The world at the latest reading."""
        return self._snapshots.latest

    def template(
        self, *, gpus: int, run_for: float | None = None, labels: dict[str, str] | None = None
    ) -> JsonObject:
        """A pod template; without `run_for` its pods run until they are deleted."""
        resources = {"cpu": str(1 + 2 * gpus), **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
        annotations = {} if run_for is None else {"test.cellgate.io/run-for": f"{run_for:.1f}s"}
        return {
            "metadata": {
                "labels": {WORKLOAD_LABEL: self.name, **(labels or {})},
                "annotations": annotations,
            },
            "spec": {
                "restartPolicy": "Never",
                "priorityClassName": self.class_name,
                "terminationGracePeriodSeconds": 1,
                "containers": [
                    {"name": "main", "image": "any", "resources": {"limits": resources}}
                ],
            },
        }

    @property
    def class_name(self) -> str:
        """The class that all pods of this workload ask for."""
        return random.Random(self.name + self.namespace).choice(CLASSES)

    def gang(
        self, size: int, *, need: int | None = None, name: str | None = None
    ) -> dict[str, str]:
        """The labels of a gang's members."""
        labels = {
            "cellgate.io/gang": name or self.name,
            "cellgate.io/gang-size": str(size),
            GANG_LABEL: name or self.name,
            NEED_LABEL: str(need or size),
        }
        return labels if need is None else {**labels, "cellgate.io/gang-min": str(need)}

    def path(self, kind: str, name: str | None = None) -> str:
        """Where objects of a kind are, or one of them is."""
        path = _PATHS.get(kind, kind).format(self.namespace)
        return path if name is None else f"{path}/{name}"

    async def create(self, kind: str, body: JsonObject) -> JsonObject:
        """Create an object; a failed call is repeated, a refusal is not."""
        return await self._send(lambda: self._api.create(self.path(kind), body), body)

    async def patch(self, kind: str, name: str, patch: JsonObject) -> None:
        """Change an object; one that is gone is left alone."""
        await self._send(lambda: self._api.patch(self.path(kind, name), patch), patch)

    async def remove(self, kind: str, name: str) -> None:
        """Delete an object with everything that it owns, and wait until it is gone."""
        path = self.path(kind, name)
        await self._send(lambda: self._api.delete(path, propagationPolicy="Background"), {})
        if kind in self.snapshot.objects:
            await self.until(
                f"{kind} {name} to go", lambda now: now.get(kind, self.namespace, name) is None
            )

    async def remove_pod(self, name: str) -> None:
        """Delete a pod; its owner may create it again under the same name."""
        await self._send(lambda: self._api.delete(self.path("Pod", name)), {})

    async def get(self, kind: str, name: str) -> JsonObject:
        """Read an object now."""
        return await self._send(lambda: self._api.get(self.path(kind, name)), {})

    async def next(self) -> None:
        """Wait for the next reading."""
        await self._snapshots.next()

    async def until(self, what: str, is_so: Callable[[Snapshot], Any]) -> Any:
        """Wait until the world is so; the first answer that is true."""
        self.waits_for = what
        while not (answer := is_so(await self._snapshots.next())):
            pass
        return answer

    async def _send(
        self, call: Callable[[], Awaitable[JsonObject]], body: JsonObject
    ) -> JsonObject:
        while True:
            try:
                return await call()
            except ApiError as error:
                if error.status in (404, 409):  # gone, or an earlier call that was stored
                    return body
                if error.status < 500 and "failed calling webhook" not in str(error):
                    raise RefusedError(str(error)) from error
            except (aiohttp.ClientError, TimeoutError):
                pass
            await asyncio.sleep(_AGAIN_SECONDS)
