"""One extender after the other takes over under load: `python -m tests.e2e.takeovers --times 50`.

Gangs come and go all the time, more than fit at once. The leader is killed, paused or stopped in
turn; counted is how long it took until another one led, and what became of every gang. When one is
lost, the logs of all processes, and the pods and Events as they were, stay in `build/takeovers`.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from statistics import median

import orjson

from tests.controlplane.binaries import find_or_build
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.forwarder import Backend, Forwarder
from tests.controlplane.nodes import NodeShape
from tests.controlplane.waiting import poll_until
from tests.e2e.gangs import a_gang, check_no_leaf_cell_twice, create, end, own_pods, running
from tests.e2e.installation import Installation, prepared

NODES = 6
_AT_ONCE = 5
WAYS = ("kill", "pause", "stop")
_EVIDENCE = Path("build/takeovers")


@asynccontextmanager
async def two_extenders(plane: ControlPlane) -> AsyncIterator[Installation]:
    """Cellgate with two extenders, and what stands for the Service of their leader."""
    async with prepared(plane, extenders=2, serves_tls=True) as installation:
        backends = [
            Backend(port, f"{installation.url_of(replica)}/leader")
            for replica, port in enumerate(installation.extender_ports)
        ]
        async with Forwarder(backends, poll_seconds=0.1) as service:
            installation.scheduler_asks = f"https://127.0.0.1:{service.port}"
            await installation.install()
            yield installation


async def leader_of(cellgate: Installation, *, other_than: int | None = None) -> int:
    """Which extender leads, once one does."""

    async def found() -> int | None:
        leader = await cellgate.leader()
        return None if leader is None or leader == other_than else leader + 1

    numbered = await poll_until(found, deadline_seconds=20, explain=lambda: "nobody leads")
    assert numbered is not None
    return numbered - 1


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
        await create(self._plane, self._path, a_gang(name, size=self.size, gpus=8))

    async def _until_it_runs(self, name: str) -> None:
        await running(self._plane, self._path, name, size=self.size)
        check_no_leaf_cell_twice((await self._plane.api.get(self._path))["items"])

    async def _finish(self, name: str) -> None:
        await end(self._plane, self._path, name, size=self.size)


async def depose(cellgate: Installation, way: str) -> float:
    """End the rule of the leader in one way; the seconds until another led. Both run afterwards."""
    leader = await leader_of(cellgate)
    process = cellgate.extenders[leader]
    began = time.monotonic()
    stopping = None
    match way:
        case "kill":
            process.kill()
        case "pause":
            process.pause()
        case _:
            stopping = asyncio.create_task(process.stop())
    await leader_of(cellgate, other_than=leader)
    seconds = time.monotonic() - began
    if way == "pause":
        process.resume()  # and it ends by itself, when it notices what it has missed
    await (stopping or process.wait(deadline_seconds=20))
    await cellgate.start_extender(leader)
    return seconds


@asynccontextmanager
async def evidence_kept(plane: ControlPlane, pods: str) -> AsyncIterator[None]:
    """Keep what can tell why it failed, if it does."""
    try:
        yield
    except BaseException:
        plane.processes.collect_logs(_EVIDENCE)
        for path in (pods, pods.removesuffix("pods") + "events"):
            kept = _EVIDENCE / f"{path.rpartition('/')[2]}.json"
            kept.write_bytes(orjson.dumps(await plane.api.get(path)))
        print(f"logs, pods and Events are in {_EVIDENCE}", flush=True)
        raise


async def main(times: int) -> None:
    """Depose so many leaders under load, and tell how it went; fails with the first lost gang."""
    async with ControlPlane(find_or_build()) as plane:
        await plane.add_nodes(NODES, NodeShape(gpus=8))
        async with (
            two_extenders(plane) as cellgate,
            own_pods(plane) as path,
            evidence_kept(plane, path),
        ):
            stream = GangStream(plane, path)
            took: dict[str, list[float]] = {way: [] for way in WAYS}
            async with stream.flowing():
                for number in range(times):
                    way = WAYS[number % len(WAYS)]
                    took[way].append(await depose(cellgate, way))
                    print(f"{number + 1:3} {way:5} {took[way][-1]:5.2f} s", flush=True)
            for way, seconds in took.items():
                if seconds:
                    print(f"{way:5} p50 {median(seconds):.2f} s, longest {max(seconds):.2f} s")
            print(
                f"{times} take-overs, {stream.finished} gangs, each ran whole, the slowest after "
                f"{stream.longest_seconds:.1f} s; no leaf cell twice"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    sys.exit(asyncio.run(main(parser.parse_args().times)))
