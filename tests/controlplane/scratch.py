"""Temporary folders that do not pile up, even after kill -9.

Each folder is held by a file lock that ends with its process. A process that
makes a folder first removes those of the same user whose lock is free.
"""

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "cellgate-controlplane-"
_LOCK = "owner.lock"
# A folder this young may have been made a moment ago and not be locked yet.
_YOUNG_SECONDS = 60.0


class ScratchDirectory:
    """A private temporary folder, removed by `remove` or by the next run."""

    def __init__(self) -> None:
        remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = (self.path / _LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Delete the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def remove_abandoned() -> None:
    """Delete this user's folders whose process is gone."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if _is_abandoned(directory):
            shutil.rmtree(directory, ignore_errors=True)


def _is_abandoned(directory: Path) -> bool:
    try:
        status = directory.stat()
        if status.st_uid != os.getuid() or time.time() - status.st_mtime < _YOUNG_SECONDS:
            return False
        with (directory / _LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held by a live process, or just removed by another one
        return False
    return True
