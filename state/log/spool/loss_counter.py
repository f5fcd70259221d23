"""Counts, across a kill -9, the records that were appended and not yet acknowledged.

Two numbers in a file that is mapped into memory: what a process has written there, the kernel keeps
when the process is killed. (When the machine dies they may be old: then the count is not exact.)
The difference that the next process finds is what was lost. A record is counted as acknowledged
after it is: killed in between, it is counted as lost although it is not. Never the other way round.
"""

import mmap
import os
import struct
from pathlib import Path
from typing import Final

_NUMBERS: Final = struct.Struct("<QQ")


class LossCounter:
    """The numbers of this process; `lost` is what the previous one left behind."""

    def __init__(self, path: Path) -> None:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # With its room on disk: a write to a page that the disk has no room for is a SIGBUS.
            os.posix_fallocate(handle, 0, _NUMBERS.size)
            self._memory = mmap.mmap(handle, _NUMBERS.size)
        finally:
            os.close(handle)
        appended, acknowledged = _NUMBERS.unpack_from(self._memory)
        self.lost: int = max(0, appended - acknowledged)
        self.set(appended=0, acknowledged=0)

    def set(self, *, appended: int, acknowledged: int) -> None:
        """Take note of both numbers; costs less than a microsecond."""
        _NUMBERS.pack_into(self._memory, 0, appended, acknowledged)

    def close(self) -> None:
        """Let go of the file."""
        self._memory.close()
