"""A simulated cluster for one test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kube.api.client import KubeClient, connect
from simulation.cluster import SimulatedCluster


@asynccontextmanager
async def connected(cluster: SimulatedCluster, folder: Path) -> AsyncIterator[KubeClient]:
    """Serve a cluster, and have a client of it; its kubeconfig is in the folder."""
    await cluster.serve()
    try:
        cluster.save_kubeconfig(folder / "kubeconfig")
        async with connect(str(folder / "kubeconfig")) as client:
            yield client
    finally:
        await cluster.close()
