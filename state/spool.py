"""A bounded queue of bytes on disk, for what Postgres cannot take now. Blocking: use a thread.

Segments `NNNNNNNNNN.spool` in one directory, appended to and read in order, each deleted when all
of it is taken. Where reading has got to is not kept: after a restart a segment is read from its
start, and whoever takes the payloads must recognise what it has taken before.

What is promised: once `append` returns, the payloads survive the death of this process; once `sync`
returns, that of the machine. A torn end, from a death in the middle of an append, is cut off when
the spool is opened, and counted; it was never acknowledged. There is room for `capacity_bytes`;
`append` takes what fits, oldest first, because dropping old ones would break the promise above.
"""

import fcntl
import logging
import os
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from policy.errors import SettingsError
from state.frames import Frame, frame, read_frames
from state.meter import Meter

logger = logging.getLogger(__name__)

_SUFFIX: Final = ".spool"
_READ_BYTES: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolSettings:
    """How much is kept, and in which pieces."""

    capacity_bytes: int = 512 * 2**20
    """At most so much on disk: at 1 kB a record half a million, ten minutes at 1,000 a second."""

    segment_bytes: int = 8 * 2**20
    """Size of one file. What is read again after a restart is at most one of them."""


@dataclass(slots=True, eq=False)
class _Segment:
    """One file: how many frames it has, and how far it is taken."""

    path: Path
    number: int
    end: int = 0
    """Offset behind the last whole frame."""
    count: int = 0
    taken_offset: int = 0
    taken_count: int = 0


class Spool:
    """A directory of segments, in use by one process at a time; by several threads if need be."""

    def __init__(self, directory: Path, settings: SpoolSettings | None = None) -> None:
        self.directory = directory
        self._settings = settings or SpoolSettings()
        self._lock = threading.Lock()
        self._directory_lock = _lock_directory(directory)
        self._segments: deque[_Segment] = deque()
        self._writing: int | None = None
        self._is_synced = True
        self._peeked_ends: list[int] = []
        self._count = 0
        self._byte_count = 0
        self.meter = Meter(directory / "meter")
        self.torn = 0
        """Frames that were cut off when the spool was opened: at least so many."""
        for path in sorted(directory.glob(f"*{_SUFFIX}")):
            self._recover(path)

    @property
    def count(self) -> int:
        """Payloads that were appended and not taken."""
        return self._count

    @property
    def byte_count(self) -> int:
        """Bytes on disk."""
        return self._byte_count

    @property
    def is_synced(self) -> bool:
        """Whether everything in it would survive the death of the machine."""
        return self._is_synced

    def append(self, payloads: Sequence[bytes]) -> int:
        """Add payloads as far as there is room, and return how many that were.

        Raises OSError if the disk fails; then none of them is in the spool.
        """
        with self._lock:
            room = self._settings.capacity_bytes - self._byte_count
            frames: list[bytes] = []
            for framed in map(frame, payloads):
                room -= len(framed)
                if room < 0:
                    break
                frames.append(framed)
            if frames:
                self._write(b"".join(frames), len(frames))
            return len(frames)

    def peek(self, limit: int) -> list[bytes]:
        """Return the oldest payloads, at most `limit`, of one segment; empty if there are none."""
        with self._lock:
            while self._segments and (segment := self._segments[0]).taken_count == segment.count:
                self._drop_first()
            frames = self._read(self._segments[0], limit) if self._segments else []
            self._peeked_ends = [found.end for found in frames]
            return [found.payload for found in frames]

    def take(self, count: int) -> None:
        """Forget the `count` oldest payloads, which the last `peek` returned."""
        with self._lock:
            segment = self._segments[0]
            segment.taken_offset += self._peeked_ends[count - 1]
            segment.taken_count += count
            self._count -= count
            if segment.taken_count == segment.count:
                self._drop_first()

    def sync(self) -> None:
        """Make everything in it survive the death of the machine."""
        with self._lock:
            if self._writing is not None and not self._is_synced:
                os.fdatasync(self._writing)
            self._is_synced = True

    def close(self) -> None:
        """Sync, and leave the directory to others."""
        self.sync()
        self._close_writing()
        self.meter.close()
        os.close(self._directory_lock)

    def _write(self, data: bytes, count: int) -> None:
        handle, segment = self._open_for(len(data))
        try:
            _write_all(handle, data)
        except OSError:
            os.ftruncate(handle, segment.end)
            raise
        self._is_synced = False
        segment.end += len(data)
        segment.count += count
        self._byte_count += len(data)
        self._count += count

    def _open_for(self, size: int) -> tuple[int, _Segment]:
        """Return the file to append to: the last one, or a new one if that is full."""
        if self._writing is not None and self._segments:
            last = self._segments[-1]
            if last.end + size <= self._settings.segment_bytes:
                return self._writing, last
        return self._start_segment()

    def _start_segment(self) -> tuple[int, _Segment]:
        if self._writing is not None and not self._is_synced:
            os.fdatasync(self._writing)
        self._close_writing()
        number = self._segments[-1].number + 1 if self._segments else 1
        segment = _Segment(path=self.directory / f"{number:010}{_SUFFIX}", number=number)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._writing = os.open(segment.path, flags, 0o600)
        _sync(self.directory)
        self._segments.append(segment)
        return self._writing, segment

    def _read(self, segment: _Segment, limit: int) -> list[Frame]:
        """Return the next frames of a segment; offsets count from what is taken already."""
        left = segment.end - segment.taken_offset
        with segment.path.open("rb") as file:
            file.seek(segment.taken_offset)
            data = file.read(min(left, _READ_BYTES))
            if len(data) < left and not any(read_frames(data)):  # one that is larger than usual
                data += file.read(left - len(data))
        return list(islice(read_frames(data), limit))

    def _drop_first(self) -> None:
        if len(self._segments) == 1:
            self._close_writing()
            self._is_synced = True
        segment = self._segments.popleft()
        self._byte_count -= segment.end
        segment.path.unlink(missing_ok=True)

    def _close_writing(self) -> None:
        if self._writing is not None:
            os.close(self._writing)
            self._writing = None

    def _recover(self, path: Path) -> None:
        """Take over a segment that an earlier process left, as far as it is whole."""
        segment = _Segment(path=path, number=int(path.stem))
        data = path.read_bytes()
        for found in read_frames(data):
            segment.end, segment.count = found.end, segment.count + 1
        if segment.end < len(data):
            self.torn += 1
            logger.warning(
                "spool has a torn end",
                extra={"file": path.name, "bytes": len(data) - segment.end, "kept": segment.count},
            )
            os.truncate(path, segment.end)
        _sync(path)
        self._segments.append(segment)
        self._byte_count += segment.end
        self._count += segment.count


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _lock_directory(directory: Path) -> int:
    """Make the directory ours until we end; a kill -9 gives it back too."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SettingsError(
            f"cannot keep a spool in {directory}: {error.strerror}; choose another directory"
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise SettingsError(
            f"the spool {directory} is in use by another process; give each one its own"
        ) from error
    return handle


def _sync(path: Path) -> None:
    """Make a file that was closed before, or the names in a directory, survive the machine."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
