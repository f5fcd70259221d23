"""DIR of `embedded:DIR`: its layout, who may use it, and what a dead server left in it.

    DIR/lock          locked by the Cellgate that uses DIR, holds its process id
    DIR/server.lock   locked by every process of the server; see `state.embedded`
    DIR/data          PostgreSQL's data, complete from the moment it has this name
    DIR/data.new      data that is still being made, or was when we were killed

Only `data` and `data.new` belong to the server's user.
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
# The root of a freshly made volume is not empty, and yet free to use.
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
        """True when there is a database to start."""
        with self._named_errors():
            return (self.data / "PG_VERSION").exists()

    def claim(self) -> None:
        """Make this process the only owner of DIR, until `release`. Creates DIR if need be."""
        if self._owner_lock is not None:
            return
        with self._named_errors():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._check_not_foreign()
            self._owner_lock = _lock(self.path / "lock")
        if self._owner_lock is None:
            raise SettingsError(
                f"embedded database {self.path} is in use by another Cellgate"
                f"{self._owner_description()}: stop it, or choose another directory"
            )
        os.ftruncate(self._owner_lock, 0)
        os.pwrite(self._owner_lock, b"%d\n" % os.getpid(), 0)

    def lock_server(self) -> bool:
        """Take the lock that the server inherits; False while an earlier one's processes live."""
        self.unlock_server()
        with self._named_errors():
            self.server_lock = _lock(self.path / "server.lock")
        return self.server_lock is not None

    def unlock_server(self) -> None:
        """Give up our own hold of the server's lock; a running server keeps its own."""
        _close(self.server_lock)
        self.server_lock = None

    def release(self) -> None:
        """Let others claim DIR."""
        self.unlock_server()
        _close(self._owner_lock)
        self._owner_lock = None

    def make_new_data(self) -> None:
        """Make an empty place for new data; removes an attempt that was cut short."""
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
        """Remove what would make PostgreSQL believe that a dead server lives.

        It asks whether the process id in this file is alive, and in a container a killed server's
        id is soon somebody else's. The server's lock, which must be held here, is the better proof.
        """
        assert self.server_lock is not None
        with self._named_errors():
            (self.data / "postmaster.pid").unlink(missing_ok=True)

    def find_servers(self) -> list[int]:
        """Return the process ids of servers that work in our data, whoever started them."""
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
            # Root in a container may lack CAP_SYS_PTRACE; then the server's own word counts.
            return pid == self._recorded_server()
        except OSError:  # it ended meanwhile
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
                f"{self.path} is not empty and holds no embedded database: choose a new directory"
            )

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn what the file system refuses into one line that says what to do."""
        try:
            yield
        except PermissionError as error:
            raise SettingsError(
                f"embedded database {self.path} belongs to another user "
                f"({error.strerror}: {error.filename}): run as that user, or choose another "
                "directory"
            ) from error
        except OSError as error:
            raise SettingsError(_describe(self.path, error)) from error


def _describe(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"embedded database {path}: the disk is full: free some space, or choose another"
    return f"cannot use {path} for an embedded database: {error.strerror}; choose another directory"


def _is_server(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text() == "postgres\n"
    return False


def _lock(path: Path) -> int | None:
    """Open and lock a file; None if somebody else holds the lock."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        if os.geteuid() == 0:  # DIR's owner must be able to go on without root
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
