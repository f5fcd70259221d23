"""`cellgate certs`: certificates for a cluster, and the way into it."""

from pathlib import Path

import pytest

from cli.main import main
from service.exit_codes import Exit


def test_certificates_are_made_and_their_way_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "certs"
    assert main(["certs", "--certs", str(directory), "--namespace", "gpu"], {}) == Exit.OK

    names = ["ca", "cellgate-scheduler", "extender"]
    files = [f"{name}.{ending}" for name in names for ending in ("crt", "key")]
    assert sorted(path.name for path in directory.iterdir()) == files
    told = capsys.readouterr().out
    assert f"create secret generic cellgate-extender-certs -n gpu --from-file={directory}" in told
    assert "ca.key --from-file" not in told

    made = {path: path.read_bytes() for path in directory.iterdir()}
    assert main(["certs", "--certs", str(directory), "--namespace", "gpu"], {}) == Exit.OK
    assert made == {path: path.read_bytes() for path in directory.iterdir()}


def test_a_ca_without_its_key_is_not_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ca.crt").write_text("theirs")
    assert main(["certs", "--certs", str(tmp_path)], {}) == Exit.USAGE
    assert [path.name for path in tmp_path.iterdir()] == ["ca.crt"]
    assert "has no ca.key next to it" in capsys.readouterr().err
