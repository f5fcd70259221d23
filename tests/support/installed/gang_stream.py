"""Gangs that are created, run and end all the time, more than fit at once."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from tests.controlplane.cluster import ControlPlane
from tests.support.installed.gangs import check_no_leaf_cell_twice, create, end, gang_pods, running

_AT_ONCE = 5


class GangStream:
    """Gangs that come and go until they are told to stop; each has to run whole."""

    size = 2

    def __init__(self, plane: ControlPlane, path: str) -> None:
        self._plane = plane
        self._path = path
        self._numbers = count()
        self._stops = asyncio.Event()
        self.finished = 0
        self.longest_seconds = 0.0
        """From the creation of a gang until all of it ran."""

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """Flow while the body runs; then every gang that was created still has to run."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._flow())
            try:
                yield
            finally:
                self._stops.set()

    async def _flow(self) -> None:
        while not self._stops.is_set():
            name = f"gang{next(self._numbers)}"
            began = time.monotonic()
            await self._begin(name)
            await self._until_it_runs(name)
            self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)
            await self._finish(name)
            self.finished += 1

    async def _begin(self, name: str) -> None:
        await create(self._plane, self._path, gang_pods(name, size=self.size, gpus=8))

    async def _until_it_runs(self, name: str) -> None:
        await running(self._plane, self._path, name, size=self.size)
        check_no_leaf_cell_twice((await self._plane.api.get(self._path))["items"])

    async def _finish(self, name: str) -> None:
        await end(self._plane, self._path, name, size=self.size)
