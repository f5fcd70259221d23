"""Payloads in a file, each framed by length and checksum, so that a torn end is found. Pure.

    4 bytes  length of the payload, big-endian
    4 bytes  CRC-32 of length and payload
    n bytes  payload

Files are append-only. Bytes that form no frame were being written when the process or the machine
crashed, or were damaged later: reading stops there. A damaged payload between whole frames is read
as an empty payload, which is never written, so that the payloads after it are not lost.
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
    """A payload, and the offset of the next frame."""

    payload: bytes
    end: int


def frame(payload: bytes) -> bytes:
    """Return the payload with its frame. Raises ValueError if it is too large."""
    if len(payload) > LARGEST_PAYLOAD:
        raise ValueError(
            f"a record of {len(payload)} bytes exceeds the limit of {LARGEST_PAYLOAD} bytes"
        )
    return _HEADER.pack(len(payload), _checksum(payload)) + payload


def read_frames(data: bytes, *, offset: int = 0) -> Iterator[Frame]:
    """Yield frames from `offset` on, until none is found."""
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
    """Read a frame, whole or damaged; None if the rest is too short for one."""
    begin = offset + _HEADER.size
    if begin > len(data):
        return None
    length, checksum = _HEADER.unpack_from(data, offset)
    if length > LARGEST_PAYLOAD or begin + length > len(data):
        return None
    payload = data[begin : begin + length]
    return _Found(payload, begin + length, checksum == _checksum(payload))


def _checksum(payload: bytes) -> int:
    # Includes the length, so that zeros are not read as a sequence of empty records.
    return zlib.crc32(payload, zlib.crc32(_LENGTH.pack(len(payload))))
