"""Control planes of a test run: started, known to the failure report, stopped; and their logs."""

import contextlib
import os
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from pathlib import Path

import pytest

from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.kubectl import KubectlResult

StartControlPlane = Callable[[ControlPlaneOptions], Awaitable[ControlPlane]]
Kubectl = Callable[..., Awaitable[KubectlResult]]

ALL_PLANES = pytest.StashKey[list[ControlPlane]]()
"""Those that run."""


@contextlib.asynccontextmanager
async def run_control_plane(
    request: pytest.FixtureRequest, binaries: Binaries, options: ControlPlaneOptions
) -> AsyncIterator[ControlPlane]:
    """Start and stop a control plane, known to the failure report for as long as it lives."""
    planes = request.config.stash.setdefault(ALL_PLANES, [])
    plane = ControlPlane(binaries, options)
    planes.append(plane)
    try:
        try:
            await plane.start()
        except BaseException:
            collect_logs(request.node)
            raise
        with capture_off(request.config):
            print(f"\ncontrol plane {binaries.version} ready in {plane.ready_seconds:.1f} s")
        yield plane
    finally:
        planes.remove(plane)
        await plane.stop()


def collect_logs(item: pytest.Item | pytest.Session) -> None:
    """Keep the logs of every process of every control plane that runs."""
    default = item.config.rootpath / "build" / "e2e-logs"
    test_name = re.sub(r"[^\w.-]+", "_", item.nodeid) or "session"
    destination = Path(os.environ.get("E2E_LOGS") or default) / test_name
    shutil.rmtree(destination, ignore_errors=True)
    planes = item.config.stash.get(ALL_PLANES, [])
    for number, plane in enumerate(planes):
        plane.processes.collect_logs(destination / f"control-plane-{number}")


@contextlib.contextmanager
def capture_off(config: pytest.Config) -> Generator[None]:
    """Show what is printed meanwhile."""
    manager = config.pluginmanager.getplugin("capturemanager")
    with manager.global_and_fixture_disabled() if manager else contextlib.nullcontext():
        yield
