"""Fixtures of the end-to-end tests: control planes, Cellgate on them, their clients, their logs.

`control_plane` is the session's; a module that breaks or configures one has a `plane` of its own.

    KUBERNETES   version to run, default `binaries.DEFAULT_KUBERNETES`
    E2E_LOGS     where the logs go when a test fails, default `build/e2e-logs` in the checkout

All tests here share one event loop, because they share the control plane. Without the programs
and without Go to build them the run ends with exit code 2: it never passes by skipping.

`make e2e` runs the modules in two processes, each with a session of its own; modules that take long
come first, so that the two processes end at about the same time.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Generator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.controlplane import binaries as programs
from tests.controlplane.api import Api, ApiError
from tests.controlplane.binaries import Binaries, BinariesError
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.nodes import NodeShape
from tests.e2e.control_planes import (
    ALL_PLANES,
    Kubectl,
    StartControlPlane,
    capture_off,
    collect_logs,
    run_control_plane,
)
from tests.support.installed.gangs import own_pods
from tests.support.installed.installation import Installation, installed
from tests.support.installed.pod_load import Load

_NO_PROGRAMS_EXIT_CODE = 2
_LONGEST = (
    "test_zoo",
    "test_webhook_failures",
    "test_history",
    "test_gentle_reclaim",
    "test_leadership",
    "test_waiting",
)
"""Modules of minutes, the longest first; all others follow in the order of their names."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run every asynchronous test of this folder on the session's loop, unless it names another."""
    here = Path(__file__).parent
    for item in items:
        names_loop = any(mark.kwargs.get("loop_scope") for mark in item.iter_markers("asyncio"))
        if here in item.path.parents and pytest_asyncio.is_async_test(item) and not names_loop:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
    items.sort(
        key=lambda item: _LONGEST.index(item.path.stem) if item.path.stem in _LONGEST else 99
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of every process log with a failure, and keep the whole logs."""
    report = yield
    if report.failed:
        for plane in item.config.stash.get(ALL_PLANES, []):
            report.sections += list(plane.processes.log_tails().items())
        collect_logs(item)
    return report


@pytest_asyncio.fixture(loop_scope="session")
async def _task_watch(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Override of the check in tests/conftest.py, for the loop that these tests run on."""
    before = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left, f"left behind by {request.node.nodeid}: {left}"


@pytest.fixture(scope="session")
def binaries(request: pytest.FixtureRequest) -> Binaries:
    """The programs, built now if need be, with progress in sight."""
    try:
        with capture_off(request.config):
            return programs.find_or_build()
    except BinariesError as error:
        pytest.exit(str(error), returncode=_NO_PROGRAMS_EXIT_CODE)


@pytest.fixture(scope="session")
def control_plane_options() -> ControlPlaneOptions:
    """How the shared control plane is started."""
    return ControlPlaneOptions()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def control_plane(
    request: pytest.FixtureRequest, binaries: Binaries, control_plane_options: ControlPlaneOptions
) -> AsyncIterator[ControlPlane]:
    """The control plane that all tests share: leave it as you found it."""
    async with run_control_plane(request, binaries, control_plane_options) as plane:
        yield plane


@pytest_asyncio.fixture(loop_scope="session")
async def start_control_plane(
    request: pytest.FixtureRequest, binaries: Binaries
) -> AsyncIterator[StartControlPlane]:
    """Start a control plane of the test's own, to break or to configure differently."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(options: ControlPlaneOptions) -> ControlPlane:
            return await stack.enter_async_context(run_control_plane(request, binaries, options))

        yield start


@pytest.fixture(scope="module")
def plane_options() -> ControlPlaneOptions:
    """How a module's own control plane is started; a module may say it otherwise."""
    return ControlPlaneOptions()


@pytest.fixture(scope="module")
def node_count() -> int:
    """How many nodes it has at first; a module that needs some says how many."""
    return 0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plane(
    request: pytest.FixtureRequest,
    binaries: Binaries,
    plane_options: ControlPlaneOptions,
    node_count: int,
) -> AsyncIterator[ControlPlane]:
    """A control plane of the module's own, with nodes of eight leaf cells."""
    async with run_control_plane(request, binaries, plane_options) as plane:
        await plane.add_nodes(node_count, NodeShape(gpus=8))
        yield plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane) -> AsyncIterator[Installation]:
    """Cellgate on it, ready; a module may install it otherwise."""
    async with installed(plane) as installation:
        yield installation


@pytest_asyncio.fixture(loop_scope="session")
async def pods(plane: ControlPlane, cellgate: Installation) -> AsyncIterator[str]:
    """The pods of a namespace of the test's own, all gone when the next test begins."""
    async with own_pods(plane) as path:
        yield path


@pytest.fixture
def load(plane: ControlPlane, pods: str) -> Load:
    """A user who creates pods there."""
    return Load(users={"alice": plane.api_as("alice")}, admin=plane.api, pods=pods)


@pytest.fixture(scope="session")
def api(control_plane: ControlPlane) -> Api:
    """The admin's JSON client."""
    return control_plane.api


@pytest.fixture(scope="session")
def kubectl(control_plane: ControlPlane) -> Kubectl:
    """`await kubectl("get", "pods", user="alice", stdin=None, check=True)`."""
    return control_plane.kubectl


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(api: Api) -> AsyncIterator[str]:
    """A namespace of the test's own, emptied at once when the test is over."""
    name = f"test-{secrets.token_hex(4)}"
    await api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    # First the namespace: from then on no controller can replace the pods that are removed.
    await api.delete(f"/api/v1/namespaces/{name}")
    with contextlib.suppress(ApiError):
        await api.delete(f"/api/v1/namespaces/{name}/pods", gracePeriodSeconds="0")
