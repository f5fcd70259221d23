"""Temporary folders: those of dead processes go, all others stay."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.controlplane.scratch import ScratchDirectory

LONG_AGO = 1_000_000_000


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place for temporary folders where nobody else works."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_folder_without_a_living_owner_is_removed_by_the_next_run() -> None:
    abandoned = ScratchDirectory()
    abandoned._lock.close()  # what the kernel does for a process that was killed
    os.utime(abandoned.path, (LONG_AGO, LONG_AGO))
    ScratchDirectory().remove()
    assert not abandoned.path.exists()


def test_a_folder_in_use_stays_however_old() -> None:
    used = ScratchDirectory()
    os.utime(used.path, (LONG_AGO, LONG_AGO))
    ScratchDirectory().remove()
    assert used.path.is_dir()
    used.remove()


def test_a_folder_that_was_just_made_stays() -> None:
    young = ScratchDirectory()
    young._lock.close()
    ScratchDirectory().remove()
    assert young.path.is_dir()
