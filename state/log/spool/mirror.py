"""Keeps, across a kill -9, the records that are in memory only.

A ring in a file that is mapped into memory: what a process has written there, the kernel keeps when
the process is killed. To write into it is to copy some bytes: no call, no disk, nobody is waited
for. It holds what was appended and not yet acknowledged, oldest first; what finds no room in it is
not kept, and counted by the `Meter` if it is lost.

    8 bytes  where the oldest record begins, counted from the first ever written
    8 bytes  where the youngest one ends
    n bytes  the ring: frames (`state.log.spool.frames`), the last of which may go on at the start
"""

import logging
import mmap
import os
import struct
from collections import deque
from pathlib import Path
from typing import Final

from state.log.spool.frames import frame, read_frames

logger = logging.getLogger(__name__)

_ENDS: Final = struct.Struct("<QQ")
_CAPACITY_BYTES: Final = 4 * 2**20
"""About four thousand records: what comes within the moment until they are in Postgres or spool."""


class Mirror:
    """The ring of this process; `left` is what the previous one had in it."""

    def __init__(self, path: Path, *, capacity_bytes: int = _CAPACITY_BYTES) -> None:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = max(os.fstat(handle).st_size, _ENDS.size + capacity_bytes)
            # With its room on disk: a write to a page that the disk has no room for is a SIGBUS.
            os.posix_fallocate(handle, 0, size)
            self._memory = mmap.mmap(handle, size)
        finally:
            os.close(handle)
        self._capacity = size - _ENDS.size
        self._begin, self._end = _ENDS.unpack_from(self._memory)
        self._lengths: deque[int] = deque()
        self.left = self._read()

    def append(self, payload: bytes) -> None:
        """Keep a payload until it is released, if there is room; an empty one is not kept."""
        framed = frame(payload) if payload else b""
        if self._end - self._begin + len(framed) > self._capacity:
            framed = b""
        self._write(framed)
        self._lengths.append(len(framed))
        self._end += len(framed)
        self._note_ends()

    def release(self, count: int) -> None:
        """Do not keep the oldest payloads any more."""
        for _ in range(count):
            self._begin += self._lengths.popleft()
        self._note_ends()

    def clear(self) -> None:
        """Do not keep what the previous process left, either."""
        self._begin = self._end = 0
        self._note_ends()

    def close(self) -> None:
        """Let go of the file."""
        self._memory.close()

    def _note_ends(self) -> None:
        # Behind the bytes that they speak of: killed in between, one record is missing, not torn.
        _ENDS.pack_into(self._memory, 0, self._begin, self._end)

    def _write(self, data: bytes) -> None:
        at = self._end % self._capacity
        first = data[: self._capacity - at]
        self._put(at, first)
        self._put(0, data[len(first) :])

    def _put(self, at: int, data: bytes) -> None:
        begin = _ENDS.size + at
        self._memory[begin : begin + len(data)] = data

    def _read(self) -> list[bytes]:
        length = self._end - self._begin
        if not 0 < length <= self._capacity:
            return []
        at = self._begin % self._capacity
        ring = self._memory[_ENDS.size :]
        return [found.payload for found in read_frames((ring[at:] + ring[:at])[:length])]


def open_mirror(directory: Path) -> Mirror | None:
    """Open the mirror of a spool that this process has; None if the disk has no room for it."""
    try:
        return Mirror(directory / "mirror")
    except OSError as error:
        extra = {"error": str(error)}
        logger.error("no mirror: a kill would cost decisions that are in memory", extra=extra)
        return None
