"""Records in a file: each framed by its length and checksum, so that a torn end is seen. Pure.

    4 bytes  length of the payload, big-endian
    4 bytes  CRC-32 of length and payload
    n bytes  payload

A file is only ever appended to. Whatever does not fit the frames from some point on was being
written when the process or the machine died, or was damaged later: reading stops there. A damaged
payload between whole frames costs no other: it is read as an empty one, which nobody writes.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_HEADER: Final = struct.Struct(">II")
_LENGTH: Final = struct.Struct(">I")
LARGEST_PAYLOAD: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Frame:
    """A payload, and where the next frame begins."""

    payload: bytes
    end: int


def frame(payload: bytes) -> bytes:
    """Return the payload with its frame. Raises ValueError if it is too large."""
    if len(payload) > LARGEST_PAYLOAD:
        raise ValueError(f"a record of {len(payload)} bytes is too large for the spool")
    return _HEADER.pack(len(payload), _checksum(payload)) + payload


def read_frames(data: bytes, *, offset: int = 0) -> Iterator[Frame]:
    """Yield frames from `offset` on, up to where none can be found any more."""
    while (found := _read_frame(data, offset)) is not None:
        if not found.is_whole:
            following = _read_frame(data, found.end)
            if following is None or not following.is_whole:
                return
        yield Frame(found.payload if found.is_whole else b"", found.end)
        offset = found.end


@dataclass(frozen=True, slots=True)
class _Found:
    payload: bytes
    end: int
    is_whole: bool


def _read_frame(data: bytes, offset: int) -> _Found | None:
    """Read what looks like a frame; None if there is no room for one."""
    begin = offset + _HEADER.size
    if begin > len(data):
        return None
    length, checksum = _HEADER.unpack_from(data, offset)
    if length > LARGEST_PAYLOAD or begin + length > len(data):
        return None
    payload = data[begin : begin + length]
    return _Found(payload, begin + length, checksum == _checksum(payload))


def _checksum(payload: bytes) -> int:
    # With the length, so that a stretch of zeros is no row of empty records.
    return zlib.crc32(payload, zlib.crc32(_LENGTH.pack(len(payload))))
