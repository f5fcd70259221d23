"""The private directory of one running server: its socket, and for root its binaries.

A Unix socket's path must be short, DIR's need not be, and the server's user may not reach DIR; so
the socket lives in a temporary directory, open to the server's user alone. Whoever uses such a
directory holds a lock on it, so one without a lock was left by a killed process and is removed
when the next one is made. The lock also keeps systemd-tmpfiles from tidying up in a live one.
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
# Still being made: a name that is not swept, until the lock is held.
_UNFINISHED_PREFIX = ".cellgate-new-"
_SOCKET = ".s.PGSQL.5432"
_LONGEST_SOCKET_PATH = 107
_RANDOM_PART = 8


class SocketDirectory:
    """A locked temporary directory. `close` removes it; a kill leaves it to the next sweep."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self.lock = lock

    def close(self) -> None:
        """Remove the directory and all in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def make_socket_directory(account: Account | None) -> SocketDirectory:
    """Make a directory for a server that runs as `account`, after removing abandoned ones."""
    base = _choose_base(account)
    sweep(base, account)
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED_PREFIX, dir=base))
    lock = _open_locked(unfinished)
    if lock is None:  # nobody else knows the name
        raise SettingsError(f"cannot lock a directory in {base}: set TMPDIR to another one")
    path = base / unfinished.name.replace(_UNFINISHED_PREFIX, _PREFIX)
    unfinished.rename(path)
    return SocketDirectory(path, lock)


def hand_over(directory: SocketDirectory, account: Account) -> None:
    """Give the directory itself, not what is in it, to the server's user."""
    os.chown(directory.path, account.uid, account.gid)


def sweep(base: Path, account: Account | None) -> None:
    """Remove private directories that we, or servers we started, left behind."""
    owners = {os.geteuid()} if account is None else {os.geteuid(), account.uid}
    for path in base.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid in owners and (lock := _open_locked(path)) is not None:
                SocketDirectory(path, lock).close()


def _open_locked(path: Path) -> int | None:
    """Open a directory and lock it; None if somebody else holds the lock."""
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
        f"none of {', '.join(bases)} can hold the socket of the embedded PostgreSQL: set TMPDIR "
        "to a short path that can be written to and that the server's user may enter"
    )


def is_suitable(base: Path, account: Account | None) -> bool:
    """True if a socket in a new directory there has a path that fits, and the server can use it."""
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
