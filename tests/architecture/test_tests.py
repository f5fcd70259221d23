"""How the tests are laid out: which folder imports which, and where unit tests lie."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.files import ROOT, tracked

# What each folder of tests may import from the others. Whatever two folders share is in
# `tests.support`; `tests.controlplane` is a real Kubernetes control plane that knows nothing of us.
MAY_IMPORT = {
    "architecture": set(),
    "chaos": {"support", "controlplane"},
    "compatibility": {"support"},
    "contract": {"support"},
    "controlplane": set(),
    # The end-to-end tests run the contract, chaos and hostile inputs on a real control plane.
    "e2e": {"support", "controlplane", "contract", "chaos", "fuzz", "zoo"},
    "fuzz": {"support"},
    "integration": {"support"},
    # Names the tests that must fail when the product is changed: that is its purpose.
    "mutations": {"support", "unit", "property"},
    "property": {"support"},
    "support": {"controlplane"},
    "unit": {"support", "controlplane"},
    "zoo": {"support", "controlplane"},
}  # fmt: skip

# Folders of `tests/unit` that are about no folder of the product.
OTHERS = {"tests/unit/docs": "docs", "tests/unit/controlplane": "tests/controlplane"}


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _imports(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, and what it takes from each."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _folders() -> set[str]:
    return {path.relative_to(ROOT).parts[1] for path in tracked("tests/*/*.py")}


def test_every_folder_is_in_the_table() -> None:
    assert _folders() == MAY_IMPORT.keys()


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_folders_import_only_what_they_may(folder: str) -> None:
    allowed = MAY_IMPORT[folder] | {folder}
    wrong = [
        f"{_relative(path)} imports {name}"
        for path in tracked(f"tests/{folder}/*.py")
        for name in _imports(path)
        if name.startswith("tests.") and name.split(".")[1] not in allowed
    ]
    assert wrong == []


def test_no_test_module_is_imported() -> None:
    """Shared parts are in modules of their own; `mutations` names tests on purpose."""
    wrong = [
        f"{_relative(path)} imports {name}"
        for path in [*tracked("tests/*.py"), *tracked("bench/*.py")]
        if not path.is_relative_to(ROOT / "tests" / "mutations")
        for name in _imports(path)
        if name.startswith("tests.")
        for part in name.split(".")[1:]
        if part.startswith("test_") or part == "conftest"
    ]
    assert wrong == []


def test_unit_tests_lie_where_the_product_has_a_folder() -> None:
    folders = {_relative(path.parent) for path in tracked("tests/unit/*.py")} - {"tests/unit"}
    wrong = [
        folder
        for folder in sorted(folders)
        if not (ROOT / OTHERS.get(folder, folder.removeprefix("tests/unit/"))).is_dir()
    ]
    assert wrong == []
