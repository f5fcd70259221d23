"""Creations at a steady rate, and what became of each."""

import asyncio
import itertools
import time
from collections import Counter, deque
from dataclasses import dataclass, field

import aiohttp

from tests.controlplane.api import Api, ApiError
from tests.support.kube.pods import PodBuilder, a_new_pod

_KEPT = 150
_AGAIN_SECONDS = 0.2
_ATTEMPTS = 5


def a_load_pod(name: str, *, is_managed: bool) -> PodBuilder:
    """A pod that Cellgate decides about, or one that it leaves alone."""
    pod = a_new_pod(name).ending_at_once()
    return pod.with_gpus(1) if is_managed else pod.with_cpu("1m")


@dataclass(slots=True)
class Load:
    """Users who create pods, and delete the oldest ones so that the cluster does not fill up."""

    users: dict[str, Api]
    admin: Api
    pods: str
    """The path of the namespace's pods."""
    counted: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    decided: dict[str, str] = field(default_factory=dict)
    """The decision of every managed pod that was created, by its name."""
    seconds: list[float] = field(default_factory=list)
    """How long each creation took."""
    _kept: deque[str] = field(default_factory=deque)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    async def run(self, creations: int, *, rate: float) -> None:
        """Create so many pods, each when its time has come, however long others take."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(creations):
                await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
                group.create_task(self.create(is_managed=number % 4 != 3))

    async def create(self, *, is_managed: bool) -> None:
        """Create one pod; a call that failed is made again, as every controller does."""
        number = next(self._numbers)
        user = list(self.users)[number % len(self.users)]
        kind = "managed" if is_managed else "other"
        name = f"{kind}-{user}-{number}"
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await self._attempt(name, user=user, is_managed=is_managed)
                return
            except ApiError as error:
                if error.status == 403 and "refused by rule" in str(error):
                    self.counted["refused by a rule"] += 1
                    return
                if error.status == 409:  # an earlier attempt of ours, whose answer was lost
                    return
                self.counted[f"failed calls ({kind})"] += 1
                self.failures.append(f"{name} (attempt {attempt}): {error}")
            except (aiohttp.ClientError, TimeoutError) as error:
                self.counted["calls that the API server did not answer"] += 1
                self.failures.append(f"{name} (attempt {attempt}): {error!r}")
            await asyncio.sleep(_AGAIN_SECONDS * attempt)
        self.counted["failed creations"] += 1

    async def _attempt(self, name: str, *, user: str, is_managed: bool) -> None:
        began = time.monotonic()
        self.counted["managed calls" if is_managed else "other calls"] += 1
        stored = await self.users[user].create(self.pods, a_load_pod(name, is_managed=is_managed))
        self.seconds.append(time.monotonic() - began)
        self.counted["created"] += 1
        annotations = stored["metadata"].get("annotations", {})
        if is_managed:
            self.decided[name] = annotations.get("cellgate.io/decision", "")
        self._kept.append(name)
        if len(self._kept) > _KEPT:
            await self.admin.delete(f"{self.pods}/{self._kept.popleft()}", gracePeriodSeconds="0")
