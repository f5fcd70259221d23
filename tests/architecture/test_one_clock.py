"""A service reads the time from one clock that its app builds, and has one policy for garbage."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.files import ROOT, tracked

SERVICES = ("certs", "extender", "kube", "service", "webhook")
CLOCK = "service/clock.py"
BUILDERS = {"extender/app.py", "webhook/app.py"}
# `time.perf_counter` is missing on purpose: it measures how long something took for a metric.
TIME = {"time.monotonic", "time.time", "datetime.now", "datetime.utcnow", "date.today"}


def _calls(path: Path) -> Iterator[tuple[str, int]]:
    """Yield what a module calls or passes on, as it is written there."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute | ast.Name):
            yield ast.unparse(node), node.lineno
        elif isinstance(node, ast.Call):
            yield f"{ast.unparse(node.func)}()", node.lineno


def _modules() -> list[str]:
    return sorted(
        str(path.relative_to(ROOT)) for package in SERVICES for path in tracked(f"{package}/*.py")
    )


@pytest.mark.parametrize("module", _modules())
def test_time_comes_from_the_clock_that_was_injected(module: str) -> None:
    wrong = TIME if module != CLOCK else set()
    wrong = wrong | (set() if module in BUILDERS else {"Clock()"})
    assert [f"line {line}: {name}" for name, line in _calls(ROOT / module) if name in wrong] == []


def test_only_one_module_tells_the_garbage_collector_what_to_do() -> None:
    importing = [
        module
        for module in _modules()
        if any(name.startswith("gc.") for name, _ in _calls(ROOT / module))
    ]
    assert importing == ["service/garbage.py"]
