"""A simulated cluster for one test: served, and perhaps with a client."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from kube.api.client import KubeClient, connect
from simulation.cluster import SimulatedCluster


@asynccontextmanager
async def served(cluster: SimulatedCluster, folder: Path) -> AsyncIterator[Path]:
    """Serve a cluster; its kubeconfig, which is in the folder."""
    await cluster.serve()
    try:
        cluster.save_kubeconfig(folder / "kubeconfig")
        yield folder / "kubeconfig"
    finally:
        await cluster.close()


@asynccontextmanager
async def connected(cluster: SimulatedCluster, folder: Path) -> AsyncIterator[KubeClient]:
    """Serve a cluster, and have a client of it."""
    async with served(cluster, folder) as kubeconfig, connect(str(kubeconfig)) as client:
        yield client


@asynccontextmanager
async def simulated(
    folder: Path, *, nodes: int = 2, racks: int = 1, policies: Mapping[str, str] | None = None
) -> AsyncIterator[KubeClient]:
    """A client of a simulated cluster of nodes with eight leaf cells."""
    cluster = SimulatedCluster(nodes=nodes, racks=racks, policies=policies)
    async with connected(cluster, folder) as client:
        yield client
