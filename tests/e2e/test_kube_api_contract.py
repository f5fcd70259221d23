"""The contract that the simulated API server is held to, on the real one."""

import asyncio
import ssl
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.contract.kube_api import Kube, KubeApiContract
from tests.controlplane.cluster import ControlPlane


@pytest.mark.asyncio(loop_scope="function")
class TestRealKubeApi(KubeApiContract):
    """Whatever the twin promises, the original keeps."""

    @pytest.fixture
    async def kube(self, control_plane: ControlPlane) -> AsyncIterator[Kube]:
        """The admin's client of the real API server."""
        trust = ssl.create_default_context(cafile=control_plane.ca_path)
        connector = aiohttp.TCPConnector(ssl=trust)
        async with aiohttp.ClientSession(control_plane.server, connector=connector) as session:
            yield Kube(session, {"Authorization": f"Bearer {control_plane.token('admin')}"})
        await asyncio.sleep(0.1)  # TLS connections close in a few steps of the loop
