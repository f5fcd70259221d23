"""Counts records that a killed process had appended but not got acknowledged.

The two counts are in a file that is mapped into memory, which the kernel keeps when the process is
killed. (After a crash of the machine they may be old, and the number is not exact.) The next
process reads the difference: the lost records. A record is counted as acknowledged only after it
was, so the number may be too high, never too low.
"""

import mmap
import os
import struct
from pathlib import Path
from typing import Final

_NUMBERS: Final = struct.Struct("<QQ")


class LossCounter:
    """The counts of this process; `lost` is the number of records that the previous one lost."""

    def __init__(self, path: Path) -> None:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Allocated on disk: without room, a write to a mapped page raises SIGBUS.
            os.posix_fallocate(handle, 0, _NUMBERS.size)
            self._memory = mmap.mmap(handle, _NUMBERS.size)
        finally:
            os.close(handle)
        appended, acknowledged = _NUMBERS.unpack_from(self._memory)
        self.lost: int = max(0, appended - acknowledged)
        self.set(appended=0, acknowledged=0)

    def set(self, *, appended: int, acknowledged: int) -> None:
        """Set both counts; takes less than a microsecond."""
        _NUMBERS.pack_into(self._memory, 0, appended, acknowledged)

    def close(self) -> None:
        """Unmap the file."""
        self._memory.close()
