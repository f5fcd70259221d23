"""A bounded queue of payloads on disk, for records that Postgres cannot take now.

All methods block: call them in a thread. The queue consists of segments, `NNNNNNNNNN.spool` files
in one directory, which are appended to and read in order. A segment is deleted when all its
payloads were taken. The read position is not stored: after a restart a segment is read from its
start, and the reader must skip payloads that it had taken before.

Once `append` returns, the payloads survive a crash of this process; once `sync` returns, a crash of
the machine. A torn end, from a crash during an append, is cut off and counted when the spool is
opened; it was never acknowledged. The spool holds `capacity_bytes`. `append` takes as many payloads
as fit, oldest first, and never drops older ones to make room, because those are acknowledged.

Reading never fails: a file that cannot be read, or that was truncated or removed, is counted and
skipped. The file stays where it is, for the next process.
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
from state.log.spool.frames import Frame, frame, read_frames
from state.log.spool.loss_counter import LossCounter

logger = logging.getLogger(__name__)

_SUFFIX: Final = ".spool"
_DIGITS: Final = 10
_READ_BYTES: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolSettings:
    """The size of a spool."""

    capacity_bytes: int = 512 * 2**20
    """The largest size on disk: half a million records of 1 kB, 10 minutes at 1,000 a second."""

    segment_bytes: int = 8 * 2**20
    """The size of one segment. At most one segment is read again after a restart."""


@dataclass(slots=True, eq=False)
class _Segment:
    """One file: its number of frames, and how many of them were taken."""

    path: Path
    end: int = 0
    """Offset behind the last whole frame."""
    count: int = 0
    taken_offset: int = 0
    taken_count: int = 0


class Spool:
    """A directory of segments, used by one process at a time; its methods are thread-safe."""

    def __init__(self, directory: Path, settings: SpoolSettings | None = None) -> None:
        self.directory = directory
        self._settings = settings or SpoolSettings()
        self._lock = threading.Lock()
        self._segments: deque[_Segment] = deque()
        self._next_number = 1
        self._writing: int | None = None
        self._is_synced = True
        self._peeked_ends: list[int] = []
        self._count = 0
        self.byte_count = 0
        self.torn = 0
        """Frames that were cut off when the spool was opened, at least."""
        self.unreadable = 0
        """Payloads in files that could not be read, at least."""
        self._directory_lock = _lock_directory(directory)
        try:
            self.loss_counter = LossCounter(directory / "meter")
            paths = sorted(directory.glob("[0-9]" * _DIGITS + _SUFFIX))
            for path in paths:
                self._recover(path, is_last=path is paths[-1])
        except OSError as error:
            os.close(self._directory_lock)
            raise _unusable(directory, error) from error

    @property
    def count(self) -> int:
        """Payloads that were appended and not yet taken."""
        return self._count

    @property
    def is_synced(self) -> bool:
        """Whether all payloads would survive a crash of the machine."""
        return self._is_synced

    def append(self, payloads: Sequence[bytes]) -> int:
        """Add payloads as long as there is room, and return how many were added.

        Raises OSError if the disk fails; then none of them was added.
        """
        with self._lock:
            room = self._settings.capacity_bytes - self.byte_count
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
        """Return the oldest payloads of one segment, at most `limit`; empty if there are none."""
        with self._lock:
            frames: list[Frame] = []
            while self._segments and not frames:
                frames = self._read_first(limit)
            self._peeked_ends = [found.end for found in frames]
            return [found.payload for found in frames]

    def take(self, count: int) -> None:
        """Remove the `count` oldest payloads, which the last `peek` returned."""
        with self._lock:
            segment = self._segments[0]
            segment.taken_offset += self._peeked_ends[count - 1]
            segment.taken_count += count
            self._count -= count
            if segment.taken_count == segment.count:
                self._drop_first()

    def sync(self) -> None:
        """Sync to disk, so that all payloads survive a crash of the machine."""
        with self._lock:
            if self._writing is not None and not self._is_synced:
                os.fdatasync(self._writing)
            self._is_synced = True

    def close(self) -> None:
        """Sync, and unlock the directory."""
        self.sync()
        self._close_writing()
        self.loss_counter.close()
        os.close(self._directory_lock)

    def _write(self, data: bytes, count: int) -> None:
        handle, segment = self._open_for(len(data))
        try:
            _write_all(handle, data)
        except OSError:
            self._cut_off(handle, segment.end)
            raise
        self._is_synced = False
        segment.end += len(data)
        segment.count += count
        self.byte_count += len(data)
        self._count += count

    def _cut_off(self, handle: int, end: int) -> None:
        """Undo a partial write; if that fails too, the next write starts a new segment."""
        try:
            os.ftruncate(handle, end)
        except OSError:
            self._close_writing()

    def _open_for(self, size: int) -> tuple[int, _Segment]:
        """Return the segment to append to: the last one, or a new one if that is full."""
        if self._writing is not None and self._segments:
            last = self._segments[-1]
            if last.end + size <= self._settings.segment_bytes:
                return self._writing, last
        return self._start_segment()

    def _start_segment(self) -> tuple[int, _Segment]:
        if self._writing is not None and not self._is_synced:
            os.fdatasync(self._writing)
        self._close_writing()
        segment = _Segment(path=self.directory / f"{self._next_number:0{_DIGITS}}{_SUFFIX}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._next_number += 1
        handle = os.open(segment.path, flags, 0o600)
        try:
            _sync(self.directory)
        except OSError:  # it might not survive a crash: the next attempt starts another segment
            os.close(handle)
            raise
        self._writing = handle
        self._segments.append(segment)
        return handle, segment

    def _read_first(self, limit: int) -> list[Frame]:
        """Return the next frames of the first segment; delete it if none is left."""
        segment = self._segments[0]
        left = segment.count - segment.taken_count
        try:
            frames = self._read(segment, limit) if left else []
        except OSError as error:
            return self._skip_first(left, why=str(error))
        if left and not frames:
            return self._skip_first(left, why="it was truncated or damaged")
        if not left:
            self._drop_first()
        return frames

    def _skip_first(self, count: int, *, why: str) -> list[Frame]:
        """Skip the rest of the first segment. Its file stays, for the next process."""
        segment = self._forget_first()
        self.unreadable += count
        self._count -= count
        logger.error(
            "spool file cannot be read",
            extra={"file": segment.path.name, "records": count, "error": why},
        )
        return []

    def _read(self, segment: _Segment, limit: int) -> list[Frame]:
        """Return the next frames of a segment; offsets count from the frames taken already."""
        left = segment.end - segment.taken_offset
        with segment.path.open("rb") as file:
            file.seek(segment.taken_offset)
            data = file.read(min(left, _READ_BYTES))
            if len(data) < left and not any(read_frames(data)):  # a frame larger than one read
                data += file.read(left - len(data))
        return list(islice(read_frames(data), limit))

    def _drop_first(self) -> None:
        segment = self._forget_first()
        try:
            segment.path.unlink(missing_ok=True)
        except OSError as error:
            # It is read again after a restart; the store skips keys that it has.
            logger.error(
                "spool file cannot be deleted",
                extra={"file": segment.path.name, "error": str(error)},
            )

    def _forget_first(self) -> _Segment:
        if len(self._segments) == 1:
            self._close_writing()
            self._is_synced = True
        segment = self._segments.popleft()
        self.byte_count -= segment.end
        return segment

    def _close_writing(self) -> None:
        if self._writing is not None:
            os.close(self._writing)
            self._writing = None

    def _recover(self, path: Path, *, is_last: bool) -> None:
        """Take over a segment of an earlier process, up to its last whole frame."""
        segment = _Segment(path=path)
        self._next_number = int(path.stem) + 1
        data = path.read_bytes()
        for found in read_frames(data):
            segment.end, segment.count = found.end, segment.count + 1
        if segment.end < len(data):
            self.torn += 1
            # Only the last segment can have a partial write; others were damaged.
            self.unreadable += not is_last
            logger.warning(
                "torn end of a spool file cut off",
                extra={"file": path.name, "bytes": len(data) - segment.end, "kept": segment.count},
            )
            os.truncate(path, segment.end)
        _sync(path)
        self._segments.append(segment)
        self.byte_count += segment.end
        self._count += segment.count


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _lock_directory(directory: Path) -> int:
    """Lock the directory until this process ends, by `kill -9` too."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unusable(directory, error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise SettingsError(
            f"the spool {directory} is in use by another process: set a different --spool-dir for "
            "each process"
        ) from error
    return handle


def _unusable(directory: Path, error: OSError) -> SettingsError:
    return SettingsError(
        f"cannot use the spool directory {directory}: {error.strerror}; set --spool-dir to another "
        "directory"
    )


def _sync(path: Path) -> None:
    """Sync a closed file, or the entries of a directory, to disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
