"""The temporary directory of one running server: its socket, and for root its binaries.

The path of a Unix socket must be short, while DIR may be long and may be unreachable for the
server's user. So the socket is in a temporary directory that only the server's user may enter. A
running server holds a lock on its directory. A directory without a lock was left by a killed
process, and is removed when the next one is created. The lock also protects it from
systemd-tmpfiles.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

from policy.errors import SettingsError
from state.embedded.account import Account

_PREFIX = "cellgate-pg-"
# The name until the lock is held: `remove_abandoned` does not match it.
_UNFINISHED_PREFIX = ".cellgate-new-"
_SOCKET = ".s.PGSQL.5432"
_LONGEST_SOCKET_PATH = 107
_RANDOM_PART = 8


class SocketDirectory:
    """A locked temporary directory, removed by `close`, or after a kill by the next server."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self.lock = lock

    def close(self) -> None:
        """Remove the directory and its contents."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def make_socket_directory(account: Account | None) -> SocketDirectory:
    """Create a directory for a server that runs as `account`; remove abandoned ones first."""
    base = _choose_base(account)
    remove_abandoned(base, account)
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED_PREFIX, dir=base))
    lock = _open_locked(unfinished)
    if lock is None:  # no other process knows the name
        raise SettingsError(f"cannot lock a directory in {base}: set TMPDIR to another directory")
    path = base / unfinished.name.replace(_UNFINISHED_PREFIX, _PREFIX)
    unfinished.rename(path)
    return SocketDirectory(path, lock)


def change_owner(directory: SocketDirectory, account: Account) -> None:
    """Make the server's user the owner of the directory, but not of its contents."""
    os.chown(directory.path, account.uid, account.gid)


def remove_abandoned(base: Path, account: Account | None) -> None:
    """Remove the directories of servers whose processes were killed."""
    owners = {os.geteuid()} if account is None else {os.geteuid(), account.uid}
    for path in base.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid in owners and (lock := _open_locked(path)) is not None:
                SocketDirectory(path, lock).close()


def _open_locked(path: Path) -> int | None:
    """Open and lock a directory; None if another process holds the lock."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(directory)
        return None
    return directory


def _choose_base(account: Account | None) -> Path:
    bases = dict.fromkeys([tempfile.gettempdir(), "/tmp", "/var/tmp", "/var/lib"])  # noqa: S108
    for base in map(Path, bases):
        if is_suitable(base, account):
            return base
    raise SettingsError(
        f"none of {', '.join(bases)} can contain the socket of the embedded PostgreSQL: set TMPDIR "
        "to a short path that is writable and that the server's user may enter"
    )


def is_suitable(base: Path, account: Account | None) -> bool:
    """Whether the path of a socket there would be short enough, and the server could use it."""
    longest = base / (_PREFIX + "x" * _RANDOM_PART) / _SOCKET
    fits = len(os.fsencode(longest)) <= _LONGEST_SOCKET_PATH
    if not (fits and os.access(base, os.W_OK | os.X_OK)):
        return False
    return account is None or (_is_open_to_all(base) and not _forbids_programs(base))


def _is_open_to_all(base: Path) -> bool:
    real = base.resolve()
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (real, *real.parents))


def _forbids_programs(base: Path) -> bool:
    return bool(os.statvfs(base).f_flag & os.ST_NOEXEC)
