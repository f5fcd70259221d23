"""Imports point one way, and the pure packages stay pure."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Whom each package may import, besides itself. Anything that is not listed is forbidden.
MAY_IMPORT = {
    "policy": set(),
    "manifests": set(),
    "service": {"policy"},
    "kube": {"policy"},
    "certs": {"policy"},
    "state": {"policy"},
    "simulation": {"policy", "kube", "service"},
    "extender": {"policy", "kube", "state", "certs", "service"},
    "webhook": {"policy", "kube", "state", "certs", "service"},
    "cli": {
        "policy", "kube", "state", "certs", "service",
        "extender", "webhook", "simulation", "manifests",
    },
    "bench": {
        "policy", "kube", "state", "certs", "service", "extender", "webhook", "simulation",
    },
}  # fmt: skip

# The core: what decides. It may use these and nothing that touches the world.
PURE = {"policy": set(), "extender/cells": {"policy"}, "extender/queue": {"policy"}}
PURE_LIBRARIES = {
    "bisect", "collections", "contextlib", "dataclasses", "enum", "functools", "hashlib", "heapq",
    "itertools", "json", "math", "operator", "re", "string", "types", "typing",
    "cel", "pydantic", "pydantic_core", "re2", "yaml",
}  # fmt: skip


def _modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def _imports(path: Path) -> Iterator[str]:
    """Yield the full name of every module that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_point_one_way(package: str) -> None:
    allowed = MAY_IMPORT[package] | {package}
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in _modules(package)
        for name in _imports(path)
        if name.split(".")[0] in (MAY_IMPORT.keys() | {"tests"}) - allowed
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", PURE)
def test_the_core_touches_nothing(folder: str) -> None:
    inside = folder.replace("/", ".")
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in _modules(folder)
        for name in _imports(path)
        if not name.startswith(inside) and name.split(".")[0] not in PURE[folder] | PURE_LIBRARIES
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", PURE)
def test_the_core_waits_for_nothing(folder: str) -> None:
    waits = ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _modules(folder)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, waits)
    ]
    assert wrong == []


def test_every_folder_is_in_the_table() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages - {"tests"} == MAY_IMPORT.keys()
