"""An extender beside a simulated cluster; the tests play kube-scheduler."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kube.api.client import KubeClient
from tests.support.services.extender import Caller, extending
from tests.support.services.simulated_cluster import simulated


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[KubeClient]:
    """A client of a simulated cluster of two nodes."""
    async with simulated(tmp_path) as client:
        yield client


@pytest.fixture
async def caller(client: KubeClient) -> AsyncIterator[Caller]:
    """A client of an extender beside that cluster."""
    async with extending(client) as caller:
        yield caller
