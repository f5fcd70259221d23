"""What holds for every test: no task is left behind, how deep property tests dig, and skips."""

import asyncio
import inspect
import os
import signal
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

_PURE = (
    "tests/unit/policy",
    "tests/unit/extender/cells",
    "tests/unit/extender/queue",
    "tests/unit/extender/room",
    "tests/unit/extender/runs",
    "tests/unit/kube",
    "tests/unit/timemachine",
    "tests/property",
)

# In the background of a shell SIGINT is ignored, and the programs under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Asserts of shared suites explain themselves like those of test modules.
pytest.register_assert_rewrite("tests.contract", "tests.support")

hypothesis.settings.register_profile("brief", max_examples=10, deadline=None)
hypothesis.settings.register_profile("fast", max_examples=50, deadline=None)
hypothesis.settings.register_profile(
    "deep", max_examples=500, deadline=None, derandomize=True, print_blob=True
)
hypothesis.settings.register_profile(
    "histories", max_examples=int(os.environ.get("HISTORIES", "10000")), deadline=None
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the pure packages: they run under two hash seeds."""
    for item in items:
        if item.nodeid.startswith(_PURE):
            item.add_marker(pytest.mark.pure)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Count tests that are skipped for one reason in one line, and not in a line for each."""
    report = yield
    if report.skipped and report.when == "setup" and isinstance(report.longrepr, tuple):
        *_, reason = report.longrepr
        report.longrepr = (str(Path(__file__).parent), 1, reason)
    return report


@pytest.fixture(autouse=True)
def _no_task_left_behind(request: pytest.FixtureRequest) -> None:
    """Fail an asynchronous test that leaves a task running."""
    if inspect.iscoroutinefunction(getattr(request, "function", None)):
        request.getfixturevalue("_task_watch")


@pytest.fixture(autouse=True)
def _every_row_can_be_masked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from tests.support.state.masked_rows import masking_rows  # after its asserts are rewritten

    with masking_rows(monkeypatch):
        yield


@pytest.fixture
async def _task_watch(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    yield
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left, f"left behind by {request.node.nodeid}: {left}"
