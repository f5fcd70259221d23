"""Preserves records that are only in memory when the process is killed.

The mirror is a ring buffer in a file that is mapped into memory, which the kernel keeps when the
process is killed. A write copies bytes: it needs no system call and waits for no disk. The ring
holds records that were appended but not yet acknowledged, oldest first. A record without room is
not mirrored; if it is lost, `LossCounter` counts it.

    8 bytes  offset of the oldest record, counted from the first record ever written
    8 bytes  offset behind the newest record
    n bytes  the ring: frames (`state.log.spool.frames`); the last one may continue at the start
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
"""About 4,000 records: more than arrive before Postgres or the spool has them."""


class Mirror:
    """The ring of this process; `left` are the payloads that the previous process left in it."""

    def __init__(self, path: Path, *, capacity_bytes: int = _CAPACITY_BYTES) -> None:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = max(os.fstat(handle).st_size, _ENDS.size + capacity_bytes)
            # Allocated on disk: without room, a write to a mapped page raises SIGBUS.
            os.posix_fallocate(handle, 0, size)
            self._memory = mmap.mmap(handle, size)
        finally:
            os.close(handle)
        self._capacity = size - _ENDS.size
        self._begin, self._end = _ENDS.unpack_from(self._memory)
        self._lengths: deque[int] = deque()
        self.left = self._read()

    def append(self, payload: bytes) -> None:
        """Keep a payload until it is removed, if there is room; an empty one is not kept."""
        framed = frame(payload) if payload else b""
        if self._end - self._begin + len(framed) > self._capacity:
            framed = b""
        self._write(framed)
        self._lengths.append(len(framed))
        self._end += len(framed)
        self._note_ends()

    def remove(self, count: int) -> None:
        """Remove the oldest payloads."""
        for _ in range(count):
            self._begin += self._lengths.popleft()
        self._note_ends()

    def clear(self) -> None:
        """Remove the payloads that the previous process left."""
        self._begin = self._end = 0
        self._note_ends()

    def close(self) -> None:
        """Unmap the file."""
        self._memory.close()

    def _note_ends(self) -> None:
        # Written after the payload: a kill in between loses one record, but tears none.
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
    """Open the mirror in the directory of a spool; None if the disk has no room for it."""
    try:
        return Mirror(directory / "mirror")
    except OSError as error:
        extra = {"error": str(error)}
        logger.error("no mirror: decisions in memory are lost on a kill", extra=extra)
        return None
