"""An accepted decision record is not edited: a new one replaces it."""

import hashlib
import re
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.files import ROOT, tracked

_FOLDER: Final = ROOT / "docs" / "decisions"
_CHECKSUMS: Final = _FOLDER / "accepted.txt"
_STATUS: Final = re.compile(r"^Status: (.+)\n", re.MULTILINE)


def _records() -> list[Path]:
    return sorted(tracked("docs/decisions/0*.md"))


def _checksum(path: Path) -> str:
    """Of the text without its Status line, the only one that may change."""
    text = _STATUS.sub("", path.read_text(), count=1)
    return f"{hashlib.sha256(text.encode()).hexdigest()}  {path.name}"


@pytest.mark.parametrize("path", _records(), ids=lambda path: path.name)
def test_an_accepted_record_is_as_it_was_accepted(path: Path) -> None:
    status = _STATUS.search(path.read_text())
    assert status, "a record has a line `Status: proposed` or `Status: accepted`"
    if not status[1].startswith("accepted"):
        return
    known = [line for line in _CHECKSUMS.read_text().splitlines() if line.endswith(path.name)]
    assert known, f"accept it by a line in {_CHECKSUMS.relative_to(ROOT)}:\n{_checksum(path)}"
    assert known == [_checksum(path)], (
        "an accepted record is not edited: undo the change, write a new record, and name it in "
        "the Status line of this one"
    )


def test_no_accepted_record_is_missing() -> None:
    accepted = [line.split()[1] for line in _CHECKSUMS.read_text().splitlines()]
    assert accepted == sorted({path.name for path in _records()} & set(accepted))


def test_every_record_is_listed() -> None:
    listed = re.findall(r"^\| \[\d+\]\((.+?)\)", (_FOLDER / "README.md").read_text(), re.MULTILINE)
    assert listed == [path.name for path in _records()]
