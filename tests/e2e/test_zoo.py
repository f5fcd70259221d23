"""Workloads of every kind for two minutes: the short form of `python -m tests.zoo`."""

import pytest

from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.zoo import surroundings
from tests.zoo.run import ZooSettings, run_zoo

SEED = 17
ARRIVAL_SECONDS = 75.0


@pytest.fixture(scope="module")
def plane_options(binaries: Binaries) -> ControlPlaneOptions:
    return surroundings.options(binaries)


@pytest.fixture
def _task_watch() -> None:
    """Not here: connections through the forwarders outlive the test."""


async def test_every_promise_is_kept_to_workloads_of_every_kind(plane: ControlPlane) -> None:
    report = await run_zoo(plane, ZooSettings(seed=SEED, arrival_seconds=ARRIVAL_SECONDS))
    assert report.is_good, "\n".join(report.lines())
    assert report.gangs > 10
