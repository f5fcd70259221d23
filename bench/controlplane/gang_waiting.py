"""What waiting costs, and how soon it ends: `python -m bench.controlplane.gang_waiting`.

First the program times single gangs on an idle cluster. Then it fills the cluster, creates gangs of
4 x 8 that do not fit, and measures what it costs to tell all pods why they wait, and then the CPU
and the API requests while nothing changes. At last it ends gangs one by one and times how soon the
next one is released.
"""

import argparse
import asyncio
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles

from bench.controlplane.gang_load import PODS, GangLoad, scheduled_plane
from bench.processes import cpu_seconds
from kube.api.client import connect
from tests.controlplane.api import JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.processes import ChildProcess
from tests.controlplane.waiting import poll_until

_LARGE = 16
_SMALL = 4
_AT_ONCE = 64
_PATIENCE_SECONDS = 600
_LABEL = re.compile(r'([a-z_]+)="([^"]*)"')
_WRITES = ("POST", "PATCH", "PUT", "DELETE")
_CONDITIONS = "PATCH pods status"


class Seen:
    """When pods were first seen bound, released, and gone, by their names."""

    def __init__(self) -> None:
        self.bound: dict[str, float] = {}
        self.released: dict[str, float] = {}
        self.gone: dict[str, float] = {}

    async def follow(self, plane: ControlPlane) -> None:
        """Watch until cancelled."""
        async with connect(str(plane.kubeconfig())) as client:
            while True:  # without a version each stream begins with all that is there
                async for event in client.watch(PODS, query={}, idle_seconds=_PATIENCE_SECONDS):
                    self._note(event["type"], event["object"])

    def _note(self, kind: str, pod: JsonObject) -> None:
        name, spec, now = pod["metadata"]["name"], pod.get("spec", {}), time.monotonic()
        if kind == "DELETED":
            self.gone.setdefault(name, now)
        if spec.get("nodeName"):
            self.bound.setdefault(name, now)
        if not spec.get("schedulingGates"):
            self.released.setdefault(name, now)


class GangTimer:
    """Creates and ends gangs on one control plane, and times them."""

    def __init__(self, plane: ControlPlane, seen: Seen) -> None:
        self._plane = plane
        self._seen = seen
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def create(self, gang: str, *, size: int) -> None:
        """Create all members at once."""
        await asyncio.gather(
            *(self._create(pod) for pod in GangLoad("cellgate").gang(gang, size=size))
        )

    async def _create(self, pod: JsonObject) -> None:
        async with self._slots:
            await self._plane.api.create(PODS, pod)

    async def end(self, gang: str, *, size: int) -> float:
        """Delete all members; when the last one was gone."""
        paths = [f"{PODS}/{gang}-{index}" for index in range(size)]
        await asyncio.gather(
            *(self._plane.api.delete(path, gracePeriodSeconds="0") for path in paths)
        )
        return await self.when(self._seen.gone, gang, size=size)

    async def when(self, times: dict[str, float], gang: str, *, size: int) -> float:
        """When the last member of a gang got there."""
        names = [f"{gang}-{index}" for index in range(size)]
        await _until(lambda: all(name in times for name in names))
        return max(times[name] for name in names)

    async def time_lone(self, *, size: int, times: int) -> list[float]:
        """Create one gang after the other on the idle cluster; the milliseconds of each."""
        took = []
        for number in range(times):
            gang, began = f"lone{size}-{number}", time.monotonic()
            await self.create(gang, size=size)
            took.append(1000 * (await self.when(self._seen.bound, gang, size=size) - began))
            await self.end(gang, size=size)
            await asyncio.sleep(0.3)
        return took

    async def fill(self, nodes: int, *, small: int) -> None:
        """Leave no node free: some gangs of four, the rest is large ones."""
        sizes = [_SMALL] * small
        while left := nodes - sum(sizes):
            sizes.append(min(_LARGE, left))
        names = [f"runs{number}" for number in range(len(sizes))]
        for name, size in zip(names, sizes, strict=True):
            await self.create(name, size=size)
        for name, size in zip(names, sizes, strict=True):
            await self.when(self._seen.bound, name, size=size)

    async def time_releases(self, *, times: int) -> list[float]:
        """End running gangs one by one; the milliseconds until the next one was released."""
        took = []
        for number in range(times):
            ended = await self.end(f"runs{number}", size=_SMALL)
            released = await self.when(self._seen.released, f"waits{number:05}", size=_SMALL)
            took.append(1000 * (released - ended))
        return took


@dataclass(frozen=True)
class Cost:
    """What was spent so far."""

    at: float
    cpu: dict[str, float]
    requests: Counter[str]


class Costs:
    """Reads the CPU of processes, and how many requests the API server has answered."""

    def __init__(self, plane: ControlPlane, processes: dict[str, ChildProcess]) -> None:
        self._plane = plane
        self._processes = processes

    async def now(self) -> Cost:
        """Return what was spent until now."""
        cpu = {who: cpu_seconds(process.pid) for who, process in self._processes.items()}
        return Cost(time.monotonic(), cpu, await self._requests())

    async def _requests(self) -> Counter[str]:
        """Return the writes to the API server by what they write; no Leases."""
        text = (await self._plane.api.get("/metrics"))["text"]
        found: Counter[str] = Counter()
        for line in text.splitlines():
            if line.startswith("apiserver_request_total{"):
                labels = dict(_LABEL.findall(line))
                what = f"{labels['verb']} {labels['resource']} {labels['subresource']}".strip()
                if labels["verb"] in _WRITES and labels["resource"] != "leases":
                    found[what] += int(float(line.rsplit(" ", 1)[1]))
        return found

    async def until_quiet(self) -> None:
        """Wait until no condition of a pod is written any more."""
        before = -1
        while (now := (await self._requests())[_CONDITIONS]) != before:
            before = now
            await asyncio.sleep(10)

    def show(self, what: str, began: Cost, ended: Cost) -> None:
        """Print the difference."""
        seconds = ended.at - began.at
        spent = [f"{who} {ended.cpu[who] - began.cpu[who]:.2f} s" for who in ended.cpu]
        written = ended.requests - began.requests
        shown = ", ".join(f"{count} {kind}" for kind, count in sorted(written.items())) or "none"
        print(f"{what}, {seconds:.0f} s: CPU {', '.join(spent)}; writes: {shown}", flush=True)


async def main(arguments: argparse.Namespace) -> None:
    """Measure everything in turn."""
    async with scheduled_plane("cellgate", arguments.nodes) as (plane, processes):
        seen = Seen()
        following = asyncio.create_task(seen.follow(plane))
        await asyncio.sleep(2)
        timer = GangTimer(plane, seen)
        for size in (_SMALL, _LARGE):
            took = await timer.time_lone(size=size, times=arguments.times)
            print(
                f"{size} x 8 on {arguments.nodes} idle nodes: p50 {median(took):.0f} ms", flush=True
            )
        await timer.fill(arguments.nodes, small=arguments.times)
        costs = Costs(plane, processes)
        began = await costs.now()
        for number in range(arguments.waiting):
            await timer.create(f"waits{number:05}", size=_SMALL)
        await costs.until_quiet()
        costs.show(f"{arguments.waiting} gangs created and told", began, await costs.now())
        began = await costs.now()
        await asyncio.sleep(arguments.seconds)
        costs.show(f"{arguments.waiting} gangs wait", began, await costs.now())
        took = await timer.time_releases(times=arguments.times)
        p99 = quantiles(took, n=100, method="inclusive")[98]
        print(f"end of a gang to release of the next: p50 {median(took):.0f} ms, p99 {p99:.0f} ms")
        following.cancel()


async def _until(condition: Callable[[], bool]) -> None:
    async def is_so() -> bool:
        return condition()

    await poll_until(
        is_so,
        deadline_seconds=_PATIENCE_SECONDS,
        explain=lambda: "no pod changed",
        poll_seconds=0.01,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=992)
    parser.add_argument("--waiting", type=int, default=2000)
    parser.add_argument("--times", type=int, default=20, help="repetitions of each measurement")
    parser.add_argument("--seconds", type=float, default=60)
    sys.exit(asyncio.run(main(parser.parse_args())))
