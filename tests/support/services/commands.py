"""The two services as `cellgate webhook` and `cellgate extender` run them, in this process."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from cli.commands import build_parser
from service.exit_codes import Exit
from service.process import Stop
from simulation.cluster import SimulatedCluster
from tests.controlplane.ports import free_ports
from tests.support.kube.pods import a_new_pod
from tests.support.services.simulated_cluster import served
from tests.support.webhook.review_requests import review_request

POLICIES = {
    "classes": """
apiVersion: cellgate.io/v1
kind: Classes
classes: [{name: prod, cellPriority: 100, high: true}, {name: oppo, cellPriority: -1}]
default: prod
""",
    "rules": """
apiVersion: cellgate.io/v1
kind: Rules
rules:
- {user: "^mallory$", then: fail, note: "not you"}
- {user: "^bob$", occupied: "> 4", then: fail, note: "four are enough"}
""",
    "cluster": """
apiVersion: cellgate.io/v1
kind: Cluster
nodeTopology:
- nodeSelector: {}
  levels: [kubernetes.io/hostname]
  leafResource: nvidia.com/gpu
  leafTypeLabel: nvidia.com/gpu.product
virtualClusters:
  vision: {virtualCells: [{leafType: A100, level: kubernetes.io/hostname, cellNumber: 1}]}
""",
}


@asynccontextmanager
async def cluster_with_policies(folder: Path) -> AsyncIterator[Path]:
    """Run a simulated cluster of one node; its kubeconfig."""
    async with served(SimulatedCluster(nodes=1, policies=POLICIES), folder) as kubeconfig:
        yield kubeconfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service that was started."""

    url: str
    http: aiohttp.ClientSession
    ending: "asyncio.Task[Exit]"

    async def get(self, path: str) -> tuple[int, str]:
        """Ask for a page; status 0 while no server listens."""
        try:
            async with self.http.get(self.url + path, ssl=False) as answer:
                return answer.status, await answer.text()
        except aiohttp.ClientConnectionError:
            return 0, ""

    async def metric(self, name: str) -> float:
        """The value of a metric without labels."""
        _, text = await self.get("/metrics")
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        return float(line.split()[1])

    async def until_ready(self) -> None:
        """Wait for readiness; an end before that is an error."""
        async with asyncio.timeout(60):
            while (await self.get("/readyz"))[0] != 200:
                assert not self.ending.done(), self.ending
                await asyncio.sleep(0.02)

    async def review(self, gang: str, *, user: str = "alice", gpus: int = 1) -> "Answered":
        """Ask about a new pod, as the API server does."""
        pod = a_new_pod(gang, namespace="vision").with_gpus(gpus)
        request = review_request(pod, user=user)
        began = time.monotonic()
        path = f"{self.url}/mutate/pods"
        async with self.http.post(path, json={"request": request}, ssl=False) as answer:
            assert answer.status == 200
            response: dict[str, Any] = (await answer.json())["response"]
        return Answered(
            seconds=time.monotonic() - began,
            is_allowed=response["allowed"],
            message=response.get("status", {}).get("message", ""),
            warnings=response.get("warnings", []),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A review's answer."""

    seconds: float
    is_allowed: bool
    message: str
    warnings: Sequence[str]

    @property
    def is_without_ledger(self) -> bool:
        """Whether it says that Postgres was not asked."""
        return any("Quota database unavailable" in warning for warning in self.warnings)


@asynccontextmanager
async def running(
    name: str, *, kubeconfig: Path, database_url: str, folder: Path, flags: Sequence[str] = ()
) -> AsyncIterator[Service]:
    """Run `cellgate NAME` until the body ends; not yet ready."""
    (port,) = free_ports(1)
    common = [
        f"--kubeconfig={kubeconfig}",
        f"--database-url={database_url}",
        f"--listen=127.0.0.1:{port}",
        f"--spool-dir={folder / f'spool-{port}'}",
    ]
    if name == "webhook":
        common += [f"--certs={folder / 'certs'}", "--linger-seconds=0"]
    options = build_parser({}).parse_args([name, *common, *flags])
    stop = Stop()
    ending = asyncio.create_task(options.command(options, stop))
    scheme = "https" if name == "webhook" else "http"
    async with aiohttp.ClientSession() as http:
        try:
            yield Service(url=f"{scheme}://127.0.0.1:{port}", http=http, ending=ending)
        finally:
            stop.set()
            with contextlib.suppress(asyncio.CancelledError):
                async with asyncio.timeout(60):
                    await ending
