"""What documents point at exists: links, files, commands. Decision records are exempt."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.files import ROOT, tracked

_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_FILE = re.compile(r"`((?:[a-z_0-9]+/)+[a-z_0-9]*(?:\.(?:py|sql|md|yaml|json))?)`")
_COMMAND = re.compile(r"python -m ((?:bench|tests|state|policy)[\w.]*)")
_PACKAGES = {path.name for path in ROOT.iterdir() if path.is_dir()}


def _documents() -> list[Path]:
    found = [*tracked("*.md")]
    return [path for path in found if "docs/decisions/0" not in str(path)]


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _missing(path: Path) -> Iterator[str]:
    text = path.read_text()
    for link in _LINK.findall(text):
        if "://" not in link and not (path.parent / link).exists():
            yield f"link {link}"
    for name in _FILE.findall(text):
        if name.split("/")[0] in _PACKAGES and not (ROOT / name).exists():
            yield f"file {name}"
    for module in _COMMAND.findall(text):
        place = ROOT.joinpath(*module.split("."))
        if not (place.with_suffix(".py").exists() or (place / "__main__.py").exists()):
            yield f"command {module}"


@pytest.mark.parametrize("path", _documents(), ids=_relative)
def test_a_document_points_at_what_exists(path: Path) -> None:
    assert list(_missing(path)) == []
