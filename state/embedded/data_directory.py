"""DIR of `embedded:DIR`: its layout, its locks, and files that a dead server left.

    DIR/lock          locked by the Cellgate process that uses DIR; contains its process id
    DIR/server.lock   locked by every process of the server; see `state.embedded`
    DIR/data          the data of PostgreSQL, always complete
    DIR/data.new      data that is being created, or whose creation was interrupted

Only `data` and `data.new` belong to the user of the server.
"""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from policy.errors import SettingsError

_OURS = frozenset({"lock", "server.lock", "data", "data.new"})
# In the root of a new volume, which is not empty but free to use.
_HARMLESS = frozenset({"lost+found"})


class DataDirectory:
    """The directory of one embedded server."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path / "data"
        self.new_data = path / "data.new"
        self._owner_lock: int | None = None
        self.server_lock: int | None = None

    @property
    def has_data(self) -> bool:
        """Whether a database exists."""
        with self._named_errors():
            return (self.data / "PG_VERSION").exists()

    def claim(self) -> None:
        """Lock DIR for this process until `release`; create DIR if it is missing."""
        if self._owner_lock is not None:
            return
        with self._named_errors():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._check_not_foreign()
            self._owner_lock = _lock(self.path / "lock")
        if self._owner_lock is None:
            raise SettingsError(
                f"embedded database {self.path} is in use by another Cellgate"
                f"{self._owner_description()}: stop it, or use another directory"
            )
        os.ftruncate(self._owner_lock, 0)
        os.pwrite(self._owner_lock, b"%d\n" % os.getpid(), 0)

    def lock_server(self) -> bool:
        """Take the lock that the server inherits; False while an earlier server still runs."""
        self.unlock_server()
        with self._named_errors():
            self.server_lock = _lock(self.path / "server.lock")
        return self.server_lock is not None

    def unlock_server(self) -> None:
        """Close this process's copy of the server's lock; a running server keeps its own."""
        _close(self.server_lock)
        self.server_lock = None

    def release(self) -> None:
        """Unlock DIR."""
        self.unlock_server()
        _close(self._owner_lock)
        self._owner_lock = None

    def make_new_data(self) -> None:
        """Create an empty `data.new`; remove an interrupted attempt."""
        with self._named_errors():
            shutil.rmtree(self.new_data, ignore_errors=True)
            self.new_data.mkdir(mode=0o700)

    def adopt_new_data(self) -> None:
        """Turn the new data into the data, at once and for good."""
        with self._named_errors():
            self.new_data.rename(self.data)
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def remove_leftovers(self) -> None:
        """Remove the file by which PostgreSQL recognizes a running server.

        PostgreSQL checks whether the process id in it is alive, but in a container another process
        may soon have the id of a killed server. The caller holds the server's lock, which proves
        that no server runs.
        """
        assert self.server_lock is not None
        with self._named_errors():
            (self.data / "postmaster.pid").unlink(missing_ok=True)

    def find_servers(self) -> list[int]:
        """Return the process ids of all servers that use the data of DIR."""
        processes = map(int, filter(str.isdecimal, os.listdir("/proc")))
        return [pid for pid in processes if _is_server(pid) and self._works_here(pid)]

    def _works_here(self, pid: int) -> bool:
        current = Path(f"/proc/{pid}/cwd")
        try:
            return any(
                folder.exists() and current.samefile(folder)
                for folder in (self.data, self.new_data)
            )
        except PermissionError:
            # Root in a container may lack CAP_SYS_PTRACE: use the id that the server wrote.
            return pid == self._recorded_server()
        except OSError:  # the process ended meanwhile
            return False

    def _recorded_server(self) -> int | None:
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int((self.data / "postmaster.pid").read_text().splitlines()[0])
        return None

    def _owner_description(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            return f" (process {int((self.path / 'lock').read_text())})"
        return ""

    def _check_not_foreign(self) -> None:
        present = set(os.listdir(self.path)) - _HARMLESS
        if present and not present & _OURS:
            raise SettingsError(
                f"{self.path} is not empty and contains no embedded database: use a new directory"
            )

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn errors of the file system into one line that says what to do."""
        try:
            yield
        except PermissionError as error:
            raise SettingsError(
                f"embedded database {self.path} belongs to another user "
                f"({error.strerror}: {error.filename}): run as that user, or use another directory"
            ) from error
        except OSError as error:
            raise SettingsError(_describe(self.path, error)) from error


def _describe(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"embedded database {path}: the disk is full; free some space, or use another disk"
    return f"cannot use {path} for an embedded database: {error.strerror}; use another directory"


def _is_server(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text() == "postgres\n"
    return False


def _lock(path: Path) -> int | None:
    """Open and lock a file; None if another process holds the lock."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        if os.geteuid() == 0:  # DIR's owner must be able to use it without root
            owner = path.parent.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)
