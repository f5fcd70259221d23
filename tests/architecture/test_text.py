"""What every file of ours has, and what none may have."""

import ast
from pathlib import Path

import pytest

from tests.architecture.files import ROOT, tracked

LONGEST_FILE = 400
LONGEST_FUNCTION = 60


def _python_files() -> list[Path]:
    return tracked("*.py")


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", _python_files(), ids=_relative)
def test_a_module_says_what_it_is_for_and_stays_short(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "no module docstring"
    assert len(text.splitlines()) <= LONGEST_FILE
    long = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION
    ]
    assert long == []


def test_nothing_names_a_registry_or_this_machine() -> None:
    # Written in halves, so that this file does not find itself.
    forbidden = ["python" + "hosted", "npm" + "js.org", "deb." + "debian", "proxy." + "golang"]
    wrong = [
        f"{_relative(path)}: {word}"
        for path in tracked("*")
        for word in forbidden
        if word in path.read_text(errors="replace")
    ]
    assert wrong == []
