"""Files that a command writes after long work: what is refused before it."""

from pathlib import Path

import pytest

from cli.whatif.output_files import check_output
from policy.errors import SettingsError


def test_a_file_that_can_be_written_passes(tmp_path: Path) -> None:
    check_output("--html", None)
    check_output("--html", tmp_path / "report.html")
    (tmp_path / "report.html").write_text("older")
    check_output("--html", str(tmp_path / "report.html"))


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"--html: cannot write .*: Is a directory"):
        check_output("--html", tmp_path)
    missing = tmp_path / "missing"
    with pytest.raises(SettingsError, match=rf"--output: .*: there is no directory {missing}"):
        check_output("--output", missing / "queues.yaml")
