"""`python -m tests.e2e.measure_latency`: what the webhook adds to the creation of a pod.

Pods with and without leaf cells are created in turns, at a fixed rate, through the real API server;
the difference is what a review costs. Nothing is asserted: numbers depend on the machine.
"""

import argparse
import asyncio
import time
from typing import Any

import aiohttp

from state.embedded import EmbeddedPostgres
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.e2e.installation import Installation

_PODS = "/api/v1/namespaces/default/pods"
_WARM_UP_SECONDS = 3


def _pod(name: str, *, is_managed: bool) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": "1"} if is_managed else {"cpu": "100m"}
    container = {"name": "main", "image": "any", "resources": {"limits": limits}}
    # Nobody schedules them: what is measured is their creation.
    return {
        "metadata": {"name": name},
        "spec": {"schedulerName": "nobody", "containers": [container]},
    }


async def _create_at_rate(
    plane: ControlPlane, *, rate: int, seconds: int
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"managed": [], "other": []}
    api = plane.api_as("alice")

    async def create(number: int) -> None:
        kind = "managed" if number % 2 else "other"
        pod = _pod(f"p-{number}", is_managed=number % 2 == 1)
        began = time.perf_counter()
        await api.create(_PODS, pod)
        if number > rate * _WARM_UP_SECONDS:
            times[kind].append(1000 * (time.perf_counter() - began))

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(rate * (seconds + _WARM_UP_SECONDS)):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            group.create_task(create(number))
    return times


async def _measure(*, rate: int, seconds: int) -> None:
    options = ControlPlaneOptions(scheduler=False, kwok=False)
    async with (
        ControlPlane(binaries.find_or_build(), options) as plane,
        EmbeddedPostgres(plane.directory / "database") as database,
        aiohttp.ClientSession() as http,
    ):
        installation = Installation(plane, http, database_url=database.url)
        await installation.install()
        times = await _create_at_rate(plane, rate=rate, seconds=seconds)
    for percent in (50, 99):
        at = {kind: sorted(some)[len(some) * percent // 100] for kind, some in times.items()}
        added = at["managed"] - at["other"]
        print(
            f"p{percent}: {at['other']:.1f} ms without, {at['managed']:.1f} ms with, +{added:.1f}"
        )


def main() -> None:
    """Measure as asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rate", type=int, default=200, help="pods per second, half of them managed"
    )
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    asyncio.run(_measure(rate=options.rate, seconds=options.seconds))


if __name__ == "__main__":
    main()
