"""`python -m bench.controlplane.creation_latency`: what the webhook adds to the creation of a pod.

The same managed pods are created at a fixed rate through the real API server, in blocks of two
seconds that take turns: without a webhook, with two webhooks that do nothing, and with ours. The
second block shows the cost that no webhook can avoid. The program asserts nothing, because numbers
depend on the machine. Compare the differences within one run.
"""

import argparse
import asyncio
import base64
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import uvloop

from bench.processes import cpu_seconds
from state.embedded import EmbeddedPostgres
from tests.controlplane import binaries, certificates
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.ports import free_ports
from tests.controlplane.waiting import poll_until
from tests.support.installed.installation import Installation
from tests.support.kube.pods import PodBuilder, a_new_pod

_NONE, _IDLE, _OURS = "no-webhook", "two-idle-hooks", "cellgate"
# Our webhooks leave this namespace alone; the idle ones are asked about pods with their label.
_NAMESPACES: Final = {_NONE: "kube-system", _IDLE: "kube-system", _OURS: "default"}
_LABEL: Final = "asked"
_BLOCK_SECONDS: Final = 2
_HOOK_METRIC: Final = "apiserver_admission_webhook_admission_duration_seconds"
_ROUTE_METRIC: Final = "cellgate_http_request_seconds"
_ADMISSION: Final = "admissionregistration.k8s.io/v1"

Times = dict[str, list[float]]
Sums = dict[str, tuple[float, float]]
"""Seconds in all and how often, by what took them."""


def _pod(name: str, kind: str) -> PodBuilder:
    """A pod that no scheduler takes: only its creation is measured."""
    return a_new_pod(name).with_gpus(1).labelled(_LABEL, kind).with_spec(schedulerName="none")


async def _create_block(plane: ControlPlane, kind: str, names: Sequence[str]) -> list[float]:
    """Create pods at an even rate; milliseconds that each took."""
    times: list[float] = []
    path = f"/api/v1/namespaces/{_NAMESPACES[kind]}/pods"

    async def create(name: str) -> None:
        began = time.perf_counter()
        await plane.api.create(path, _pod(f"{kind}-{name}", kind))
        times.append(1000 * (time.perf_counter() - began))

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number, name in enumerate(names):
            due = began + number * _BLOCK_SECONDS / len(names)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(create(name))
    return times


async def _create_in_turns(plane: ControlPlane, *, rate: int, rounds: Sequence[int]) -> Times:
    times: Times = {kind: [] for kind in _NAMESPACES}
    for number in rounds:
        names = [f"{number}-{index}" for index in range(rate * _BLOCK_SECONDS)]
        for kind in _NAMESPACES:
            times[kind] += await _create_block(plane, kind, names)
    return times


@asynccontextmanager
async def _idle_hooks(plane: ControlPlane, http: aiohttp.ClientSession) -> AsyncIterator[None]:
    """Have two webhooks that do nothing asked about the pods meant for them."""
    (port,) = free_ports(1)
    folder = plane.directory
    files = [str(folder / certificates.SERVER_CERTIFICATE), str(folder / certificates.SERVER_KEY)]
    argv = [sys.executable, "-m", "bench.controlplane.idle_hooks", str(port), *files]
    process = plane.spawn("idle-hooks", argv, cwd=Path.cwd())
    url = f"https://127.0.0.1:{port}"

    async def answers() -> bool:
        try:
            async with http.get(url, ssl=False):
                return True
        except aiohttp.ClientConnectionError:
            return False

    await poll_until(answers, deadline_seconds=30, explain=process.tail)
    for kind in ("Mutating", "Validating"):
        path = f"/apis/{_ADMISSION}/{kind.lower()}webhookconfigurations"
        await plane.api.create(path, _idle_configuration(kind, url, plane.ca_path.read_bytes()))
    yield


def _idle_configuration(kind: str, url: str, ca: bytes) -> dict[str, Any]:
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    hook = {
        "name": "idle.example.org",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": f"{url}/{kind}", "caBundle": base64.b64encode(ca).decode()},
        "rules": [{**pods, "operations": ["CREATE"]}],
        "objectSelector": {"matchLabels": {_LABEL: _IDLE}},
        "sideEffects": "None",
    }
    return {
        "apiVersion": _ADMISSION,
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": "idle"},
        "webhooks": [hook],
    }


async def _measure(*, rate: int, rounds: int, has_planner: bool) -> None:
    options = ControlPlaneOptions(scheduler=False, kwok=False)
    flags = () if has_planner else ("--gate-queued-only",)
    async with (
        ControlPlane(binaries.find_or_build(), options) as plane,
        EmbeddedPostgres(plane.directory / "database") as database,
        aiohttp.ClientSession() as http,
        _idle_hooks(plane, http),
    ):
        installation = Installation(plane, http, database_url=database.url, webhook_flags=flags)
        await installation.install()
        if not has_planner:
            # Our pods are sent to it whatever they say, and there is no node for any of them.
            await installation.scheduler.stop()
        await _create_in_turns(plane, rate=rate, rounds=[rounds])  # to warm up
        before, cpu = await _sums(plane, installation, http), cpu_seconds(installation.webhook.pid)
        times = await _create_in_turns(plane, rate=rate, rounds=range(rounds))
        after, cpu = (
            await _sums(plane, installation, http),
            cpu_seconds(installation.webhook.pid) - cpu,
        )
    _print_times(times)
    _print_parts(before, after, pods=len(times[_OURS]))
    print(f"CPU of the webhook: {1000 * cpu / len(times[_OURS]):.2f} ms per pod")


async def _sums(
    plane: ControlPlane, installation: Installation, http: aiohttp.ClientSession
) -> Sums:
    """How long webhooks took, as the API server saw it and as ours did."""
    seen: str = (await plane.api.get("/metrics"))["text"]
    url = f"{installation.webhook_port_url(0)}/metrics"
    async with http.get(url, ssl=False) as answer:
        own = await answer.text()
    return {**_parse(seen, _HOOK_METRIC), **_parse(own, _ROUTE_METRIC)}


def _parse(text: str, metric: str) -> Sums:
    found: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        name, _, rest = line.partition("{")
        if name in (f"{metric}_sum", f"{metric}_count"):
            labels, _, value = rest.rpartition("} ")
            found.setdefault(labels, {})[name.rpartition("_")[2]] = float(value)
    return {labels: (both["sum"], both["count"]) for labels, both in found.items()}


def _print_times(times: Times) -> None:
    base: dict[int, float] = {}
    for kind, some in times.items():
        at = {percent: sorted(some)[len(some) * percent // 100] for percent in (50, 99)}
        base = base or at
        shown = (f"p{p} {at[p]:5.1f} ms ({at[p] - base[p]:+5.1f})" for p in at)
        print(f"{kind:15}", *shown, f"of {len(some)}")


def _print_parts(before: Sums, after: Sums, *, pods: int) -> None:
    """Each kind of call, by its mean: where the time goes."""
    for labels, (seconds, calls) in sorted(after.items()):
        old_seconds, old_calls = before.get(labels, (0.0, 0.0))
        if calls > old_calls:
            mean = 1000 * (seconds - old_seconds) / (calls - old_calls)
            print(f"{mean:6.2f} ms, {(calls - old_calls) / pods:.2f} a pod: {labels}")


def main() -> None:
    """Measure as asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=100, help="pods per second")
    parser.add_argument("--rounds", type=int, default=10, help="blocks of each kind")
    parser.add_argument(
        "--planner", action="store_true", help="gate all pods, and let the extender plan them"
    )
    options = parser.parse_args()
    uvloop.run(_measure(rate=options.rate, rounds=options.rounds, has_planner=options.planner))


if __name__ == "__main__":
    main()
