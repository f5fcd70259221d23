"""The webhook as a process of its own, asked over TLS as the API server asks: reviews per second.

Rules, quotas and charging are on, Postgres is on the same machine. Reviews come at a fixed rate,
whether or not the last one was answered, on as many connections as an API server keeps.
"""

import asyncio
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import orjson
import uvloop

from bench.processes import cpu_seconds
from bench.report import SEED, Result, percentile
from bench.services.http_load import Connection, send_at_rate
from simulation.cluster import SimulatedCluster
from state.embedded import EmbeddedPostgres

_CONNECTIONS = 25
_WARM_UP = 50
_RATES = (100, 700)
_CLASSES = """
apiVersion: cellgate.io/v1
kind: Classes
classes: [{name: prod, cellPriority: 100, high: true}, {name: oppo, cellPriority: -1}]
default: prod
"""
_QUOTAS = """
apiVersion: cellgate.io/v1
kind: Quotas
groups:
- name: all-users
  limits: {leafCells: 100000000, leafCellsHigh: 100000000, leafCellHours: {day: 100000000}}
  eachUser: {limits: {leafCells: 100000000, leafCellsHigh: 100000000}}
"""
_PROGRAM = Path(sys.executable).with_name("cellgate")
_NUMBERS = count(SEED << 16)


def measure(*, is_quick: bool) -> list[Result]:
    """Measure on a server, a cluster and a webhook of the benchmark's own."""
    with tempfile.TemporaryDirectory(prefix="cellgate-bench-") as folder:
        directory = Path(folder)
        directory.chmod(0o755)  # an embedded server may run as another user
        return uvloop.run(_measure(directory, is_quick=is_quick))


async def _measure(directory: Path, *, is_quick: bool) -> list[Result]:
    async with (
        EmbeddedPostgres(directory / "postgres") as postgres,
        _webhook(directory, postgres.url, rules=10) as short,
        _webhook(directory, postgres.url, rules=1000) as long,
    ):
        results = await _in_turns({10: short, 1000: long}, repeat=300 if is_quick else 2000)
        for rate in _RATES:
            results += await _at_rate(short, rate, seconds=3 if is_quick else 15)
    return results


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """A webhook that answers."""

    url: str
    pid: int

    def cpu_seconds(self) -> float:
        """How much of a core it has used so far."""
        return cpu_seconds(self.pid)


async def _in_turns(webhooks: Mapping[int, _Running], *, repeat: int) -> list[Result]:
    """Time one review after the other, by tables of different lengths: what a long one costs.

    In turns, because a ratio is compared: what else the machine does must hit both alike.
    """
    opened = {rules: await Connection.open(one.url, _tls()) for rules, one in webhooks.items()}
    times: dict[int, list[float]] = {rules: [] for rules in webhooks}
    for number in range(repeat + _WARM_UP):
        for rules, connection in opened.items():
            times[rules].append(1000 * await connection.post("/mutate/pods", _review(number)))
    for connection in opened.values():
        connection.close()
    return [
        Result(case={"rules": rules}, metric="review_p50_ms", value=percentile(some[_WARM_UP:], 50))
        for rules, some in times.items()
    ]


async def _at_rate(webhook: _Running, rate: int, *, seconds: int) -> list[Result]:
    connections = [await Connection.open(webhook.url, _tls()) for _ in range(_CONNECTIONS)]
    warm_up = (_review(number) for number in range(rate))
    await send_at_rate(connections, "/mutate/pods", warm_up, rate=rate)
    began, cpu = time.perf_counter(), webhook.cpu_seconds()
    bodies = (_review(number) for number in range(rate * seconds))
    times = await send_at_rate(connections, "/mutate/pods", bodies, rate=rate)
    elapsed, cpu = time.perf_counter() - began, webhook.cpu_seconds() - cpu
    for connection in connections:
        connection.close()
    case = {"offered_per_second": rate}
    return [
        Result(case=case, metric="answered_per_second", value=len(times) / elapsed),
        Result(case=case, metric="cpu_ms_per_review", value=1000 * cpu / len(times)),
        *(
            Result(
                case=case,
                metric=f"review_p{percent}_ms",
                value=percentile([one * 1000 for one in times], percent),
            )
            for percent in (50, 99)
        ),
    ]


@asynccontextmanager
async def _webhook(directory: Path, database_url: str, *, rules: int) -> AsyncIterator[_Running]:
    """Run a webhook process over a simulated cluster that has the policies."""
    policies = {"classes": _CLASSES, "rules": _rules(rules), "quotas": _QUOTAS}
    cluster = SimulatedCluster(nodes=1, policies=policies)
    await cluster.serve()
    cluster.save_kubeconfig(directory / f"{rules}.kubeconfig")
    port = await _free_port()
    flags = {
        "--kubeconfig": directory / f"{rules}.kubeconfig",
        "--database-url": database_url,
        "--certs": directory / f"{rules}.certs",
        "--listen": f"127.0.0.1:{port}",
        "--log-level": "warning",
    }
    arguments = [str(part) for flag in flags.items() for part in flag]
    process = await asyncio.create_subprocess_exec(str(_PROGRAM), "webhook", *arguments)
    try:
        await _until_ready(f"127.0.0.1:{port}", process)
        yield _Running(url=f"127.0.0.1:{port}", pid=process.pid)
    finally:
        process.terminate()
        await process.wait()
        await cluster.close()


async def _until_ready(url: str, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(60):
        while process.returncode is None:
            try:
                connection = await Connection.open(url, _tls())
            except OSError:
                await asyncio.sleep(0.1)
                continue
            status = await connection.get_status("/readyz")
            connection.close()
            if status == 200:
                return
            await asyncio.sleep(0.1)
    raise RuntimeError("the webhook ended before it was ready")


async def _free_port() -> int:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    return port


def _rules(number: int) -> str:
    """A table of which only the last rule matches."""
    others = [f'- {{user: "^another-{index}$", then: fail}}' for index in range(number - 1)]
    head = ["apiVersion: cellgate.io/v1", "kind: Rules", "rules:"]
    last = '- {occupied: "< 100000000", then: retain}'
    return "\n".join([*head, *others, last])


def _review(number: int) -> bytes:
    """Ask about one more pod; two hundred users take turns."""
    key = next(_NUMBERS)
    resources = {"limits": {"nvidia.com/gpu": "8", "cpu": "8", "memory": "64Gi"}}
    container = {"name": "main", "image": "example.org/train:1", "resources": resources}
    request = {
        "uid": f"00000000-0000-4000-8000-{key:012x}",
        "operation": "CREATE",
        "namespace": "vision",
        "userInfo": {
            "username": f"user-{number % 200}",
            "groups": ["all-users", "system:authenticated"],
        },
        "object": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{key}", "namespace": "vision", "labels": {"app": "bench"}},
            "spec": {
                "containers": [container],
                "priority": 0,
                "schedulerName": "default-scheduler",
            },
        },
        "dryRun": False,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return orjson.dumps(review)


def _tls() -> ssl.SSLContext:
    """Encrypt as the API server does; the server is ours and need not be verified."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
