"""The simulated API server keeps the contract of the Kubernetes API."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from simulation.cluster import SimulatedCluster
from tests.contract.kube_api import Kube, KubeApiContract


class TestSimulatedKubeApi(KubeApiContract):
    """The contract, on the twin."""

    @pytest.fixture
    async def kube(self) -> AsyncIterator[Kube]:
        cluster = SimulatedCluster(nodes=1)
        url = await cluster.serve()
        async with aiohttp.ClientSession(base_url=url) as session:
            yield Kube(session)
        await cluster.close()
