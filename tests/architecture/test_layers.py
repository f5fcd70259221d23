"""Imports point one way, and the pure packages stay pure."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.files import ROOT, tracked

# What each package may import, besides itself: packages, or single modules of one. Anything that is
# not listed is forbidden. Of `service` the package `kube` takes only what has no effect of its own:
# the type of the clock that is injected, and bounded memories.
MAY_IMPORT = {
    "policy": set(),
    "manifests": set(),
    "service": {"policy"},
    "kube": {"policy", "service.clock", "service.memory"},
    "certs": {"policy"},
    "state": {"policy"},
    "simulation": {"policy", "kube", "service"},
    "extender": {"policy", "kube", "state", "certs", "service"},
    "webhook": {"policy", "kube", "state", "certs", "service"},
    "timemachine": {"policy", "extender.cells", "extender.queue"},
    "cli": {
        "policy", "kube", "state", "certs", "service",
        "extender", "webhook", "simulation", "manifests", "timemachine",
    },
    # Not part of the product: it measures the product, also on the tests' real control plane.
    "bench": {
        "policy", "kube", "state", "certs", "service", "extender", "webhook", "simulation",
        "timemachine", "cli", "tests.controlplane", "tests.support",
    },
}  # fmt: skip

# The core: what decides. It may use these and nothing that touches the world.
PURE = {
    "policy": set(),
    "extender/cells": {"policy"},
    "extender/queue": {"policy", "extender.cells"},
    "extender/room": {"policy"},
    "extender/runs": {"policy"},
    "timemachine": {"policy", "extender.cells", "extender.queue"},
}
PURE_LIBRARIES = {
    "bisect", "collections", "contextlib", "dataclasses", "enum", "functools", "hashlib", "heapq",
    "itertools", "json", "math", "operator", "re", "string", "types", "typing",
    "cel", "pydantic", "pydantic_core", "re2", "yaml",
}  # fmt: skip
# Types of values that come in. What else these libraries have reads the clock, or chance.
PURE_VALUES = {
    "datetime": {"UTC", "date", "datetime", "time", "timedelta"},
    "uuid": {"UUID"},
}


# Builtins that reach the world, or differ from run to run.
IMPURE_BUILTINS = {
    "__import__", "breakpoint", "compile", "eval", "exec", "globals", "hash", "id", "input", "open",
    "print", "vars",
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
    ours, allowed = _folders() | {"tests"}, MAY_IMPORT[package] | {package}
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in _modules(package)
        for name in _imports(path)
        if name.split(".")[0] in ours and not any(_is_in(name, place) for place in allowed)
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", PURE)
def test_the_core_touches_nothing(folder: str) -> None:
    inside = folder.replace("/", ".")
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in _modules(folder)
        for name in _imports(path)
        if not any(_is_in(name, place) for place in {inside} | PURE[folder] | PURE_LIBRARIES)
        and not _takes_values_only(path, name)
    ]
    assert wrong == []


def _takes_values_only(path: Path, module: str) -> bool:
    """Tell whether a file takes only types of values from a library, and asks none for the time."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == module]
    names = {alias.name for node in froms for alias in node.names}
    asked = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    is_timeless = asked.isdisjoint({"now", "utcnow", "today"})
    return bool(names) and names <= PURE_VALUES.get(module, set()) and is_timeless


def _is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


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


@pytest.mark.parametrize("folder", PURE)
def test_the_core_calls_nothing_that_reaches_the_world(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.id}"
        for path in _modules(folder)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name) and node.id in IMPURE_BUILTINS
    ]
    assert wrong == []


def test_nobody_imports_by_name() -> None:
    """What is imported by a text is hidden from the table above."""
    wrong = [
        str(path.relative_to(ROOT))
        for package in MAY_IMPORT
        for path in _modules(package)
        if "import_module" in path.read_text() or "__import__" in path.read_text()
    ]
    assert wrong == []


def test_every_folder_is_in_the_table() -> None:
    assert _folders() - {"tests"} == MAY_IMPORT.keys()


def _folders() -> set[str]:
    """Every folder of ours that Python could import from, package or not."""
    return {path.relative_to(ROOT).parts[0] for path in tracked("*.py")}


def test_only_the_cluster_package_touches_the_engine() -> None:
    """What the engine is told and answers is logged there: no other module may pass it by.

    The time machine plays with engines of its own, which place no pod.
    """
    own = (
        ROOT / "extender" / "cluster",
        ROOT / "extender" / "cells",
        ROOT / "timemachine" / "planned",
    )
    others = [
        path
        for package in MAY_IMPORT.keys() - {"bench"}
        for path in _modules(package)
        if not any(path.is_relative_to(place) for place in own)
    ]
    wrong = [
        str(path.relative_to(ROOT))
        for path in others
        if "extender.cells.engine" in _imports(path) or _has_attribute(path, "engine", "_engine")
    ]
    assert wrong == []


def _has_attribute(path: Path, *names: str) -> bool:
    nodes = ast.walk(ast.parse(path.read_text()))
    return any(isinstance(node, ast.Attribute) and node.attr in names for node in nodes)


def _divided() -> list[Path]:
    """Every package of the product that is divided into rooms."""
    rooms = (path.parent for name in MAY_IMPORT for path in tracked(f"{name}/*/__init__.py"))
    return sorted({room.parent for room in rooms})


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("package", _divided(), ids=_relative)
def test_rooms_of_a_package_do_not_import_each_other_in_a_circle(package: Path) -> None:
    """Modules beside the rooms are free: they serve all rooms, or put the rooms together."""
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    uses = {room: _rooms_used(package / room) & rooms - {room} for room in sorted(rooms)}
    order: list[str] = []
    while free := [room for room in uses if room not in order and uses[room] <= set(order)]:
        order += free
    assert {room: uses[room] - set(order) for room in uses if room not in order} == {}


def _rooms_used(room: Path) -> set[str]:
    """The modules and rooms of the same package that the modules of a room import."""
    prefix = ".".join((*room.parent.relative_to(ROOT).parts, ""))
    names = (name for path in room.rglob("*.py") for name in _imports(path))
    return {name.removeprefix(prefix).split(".")[0] for name in names if name.startswith(prefix)}
