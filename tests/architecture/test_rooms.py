"""Every folder is small enough to read, says what lives in it, and lists its modules."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.files import ROOT, tracked

MOST_MODULES = 16
PACKAGES = (
    "bench", "certs", "cli", "extender", "kube", "policy", "service", "simulation", "state",
    "timemachine", "webhook", "tests/controlplane", "tests/support", "tests/zoo",
)  # fmt: skip


def _folders() -> list[Path]:
    """Every folder of the product, of the benchmarks and of the tests' shared code."""
    return sorted({path.parent for package in PACKAGES for path in tracked(f"{package}/*.py")})


def _names(folder: Path) -> list[str]:
    """The modules and packages directly in a folder."""
    modules = [path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")]
    packages = [path.parent.name for path in folder.glob("*/__init__.py")]
    return sorted(modules + packages)


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("folder", _folders(), ids=_relative)
def test_a_folder_holds_no_more_modules_than_a_reader_can_keep_in_mind(folder: Path) -> None:
    modules = [path for path in folder.glob("*.py") if not path.stem.startswith("__")]
    assert len(modules) <= MOST_MODULES


@pytest.mark.parametrize("folder", _folders(), ids=_relative)
def test_a_folder_lists_its_modules(folder: Path) -> None:
    """A line of the package's docstring begins with the name of each module and package in it."""
    tree = ast.parse((folder / "__init__.py").read_text())
    docstring = ast.get_docstring(tree, clean=False) or ""
    listed = set(re.findall(r"^ *([a-z_0-9]+)/? {2,}\S", docstring, flags=re.MULTILINE))
    missing = [name for name in _names(folder) if name not in listed]
    assert missing == [], f"{_relative(folder)}/__init__.py does not list {', '.join(missing)}"
